package embedded

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// fakeSystem stands for the system's clocks.
type fakeSystem struct{ now reading }

func (f *fakeSystem) pass(d time.Duration) {
	f.now.elapsed += d
	f.now.wall = f.now.wall.Add(d)
}

func newFakeClock() (*fakeSystem, *clock) {
	system := &fakeSystem{reading{elapsed: time.Hour, wall: time.UnixMilli(1_700_000_000_000)}}
	return system, newRealClock(miniredis.NewMiniRedis(), func() reading { return system.now })
}

func TestClockFollowsElapsedTime(t *testing.T) {
	system, c := newFakeClock()
	start := c.time()
	if want := time.UnixMilli(1_700_000_000_000); !start.Equal(want) {
		t.Fatalf("at the start: expected %v, found %v", want, start)
	}
	system.pass(1500 * time.Millisecond)
	if got := c.time().Sub(start); got != 1500*time.Millisecond {
		t.Errorf("after 1.5 s: expected 1.5 s, found %v", got)
	}
	system.pass(resolution - 1)
	if got := c.time().Sub(start); got != 1500*time.Millisecond {
		t.Errorf("below its resolution: expected that time stands still, found %v", got)
	}
	system.pass(1)
	if got := c.time().Sub(start); got != 1500*time.Millisecond+resolution {
		t.Errorf("after its resolution: expected 1.501 s, found %v", got)
	}
}

func TestClockNeverGoesBack(t *testing.T) {
	system, c := newFakeClock()
	start := c.time()
	system.now.wall = system.now.wall.Add(-time.Hour)
	system.pass(time.Second)
	if got := c.time().Sub(start); got != time.Second {
		t.Errorf("after the system's clock was set back: expected that 1 s has passed, found %v", got)
	}
}

func TestClockFollowsALeap(t *testing.T) {
	system, c := newFakeClock()
	start := c.time()
	if err := c.mini.Set("k", "v"); err != nil {
		t.Fatal(err)
	}
	c.mini.SetTTL("k", 7*time.Hour)
	system.now.wall = system.now.wall.Add(8 * time.Hour) // the machine slept
	system.pass(time.Second)
	if got := c.time().Sub(start); got != 8*time.Hour+time.Second {
		t.Errorf("after the machine slept for 8 h: expected 8h0m1s, found %v", got)
	}
	if c.mini.Exists("k") {
		t.Error("a key with a life of 7 h survived 8 h of sleep")
	}
}

func TestClockExpiresKeys(t *testing.T) {
	system, c := newFakeClock()
	if err := c.mini.Set("k", "v"); err != nil {
		t.Fatal(err)
	}
	c.mini.SetTTL("k", time.Second)
	system.pass(999 * time.Millisecond)
	c.tick()
	if !c.mini.Exists("k") {
		t.Fatal("a key with a life of 1 s was gone after 999 ms")
	}
	system.pass(time.Millisecond)
	c.tick()
	if c.mini.Exists("k") {
		t.Error("a key with a life of 1 s was still there after 1 s")
	}
}

// TestClockSparesManyKeys holds the cost of time passing to a small part of all time: it grows with the number of keys.
func TestClockSparesManyKeys(t *testing.T) {
	for _, test := range []struct{ cost, want time.Duration }{
		{0, resolution},
		{10 * time.Microsecond, resolution},
		{time.Millisecond, 10 * time.Millisecond},
		{10 * time.Millisecond, coarsest},
		{time.Minute, 2 * time.Minute},
	} {
		if got := pause(test.cost); got != test.want {
			t.Errorf("after a step of %v: expected a pause of %v, found %v", test.cost, test.want, got)
		}
	}

	system, c := newFakeClock()
	read := c.read
	c.read = func() reading {
		now := read()
		system.pass(time.Millisecond) // what the work between two looks takes
		return now
	}
	system.pass(time.Second)
	c.tick()
	if got := c.next - c.elapsed; got != 10*time.Millisecond {
		t.Errorf("after a step of 1 ms: expected a pause of 10ms, found %v", got)
	}
}
