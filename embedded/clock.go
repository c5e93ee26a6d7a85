package embedded

import (
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

const (
	// resolution is how exact the server's time is with few keys. miniredis checks every key when time moves on, so
	// with many keys time moves less often: moving it takes at most a tenth of all time, and it becomes less exact,
	// down to coarsest.
	resolution = time.Millisecond
	coarsest   = 50 * time.Millisecond
	// leap is how far the system's clock may be ahead before the server's time jumps to it, as it must after the
	// machine has slept.
	leap = time.Second
)

// reading is one reading of the system's clocks.
type reading struct {
	elapsed time.Duration // since some fixed moment; never goes back, does not count while the machine sleeps
	wall    time.Time     // may be set back and forth
}

var started = time.Now()

func readSystem() reading {
	now := time.Now()
	return reading{elapsed: now.Sub(started), wall: now.Round(0)}
}

// clock drives the time of a miniredis, without a goroutine: each command moves the time on before it runs, since only
// commands use it. Within a script time stands still, as in Redis.
type clock struct {
	mini *miniredis.Miniredis
	read func() reading // nil for a virtual clock

	mu      sync.Mutex // protects the fields below; taken before the lock of mini
	current time.Time  // the server's time; never goes back
	elapsed time.Duration
	next    time.Duration // not to be moved before
}

func newRealClock(mini *miniredis.Miniredis, read func() reading) *clock {
	now := read()
	c := &clock{mini: mini, read: read, current: now.wall, elapsed: now.elapsed}
	c.start()
	return c
}

func newVirtualClock(mini *miniredis.Miniredis, now time.Time) *clock {
	if now.IsZero() {
		now = time.Now()
	}
	c := &clock{mini: mini, current: time.UnixMilli(now.UnixMilli())}
	c.start()
	return c
}

func (c *clock) start() {
	c.mini.SetTime(c.current)
	c.mini.ClockTTL(true)
}

// tick moves the server's time to the present. It must not be called while a script runs, which holds the lock of mini.
func (c *clock) tick() {
	if c.read == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.read()
	if now.elapsed < c.next {
		return
	}
	c.current = c.current.Add(now.elapsed - c.elapsed)
	c.elapsed = now.elapsed
	if now.wall.Sub(c.current) > leap {
		c.current = now.wall
	}
	c.set()
	c.next = now.elapsed + pause(c.read().elapsed-now.elapsed)
}

// pause returns how long time stands still after a step that took cost.
func pause(cost time.Duration) time.Duration {
	return min(max(10*cost, resolution), max(coarsest, 2*cost))
}

// set sets the server's time and expires keys. Call it with mu held.
func (c *clock) set() {
	c.mini.SetTime(c.current)
	c.mini.DB(0) // any access does it, for all databases
}

// time returns the time as the next command would see it.
func (c *clock) time() time.Time {
	c.tick()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

func (c *clock) advance(d time.Duration) {
	if c.read != nil {
		panic("delayed: embedded: Advance: this server's time is real: start it with Config.Virtual")
	}
	if d < 0 {
		panic(fmt.Sprintf("delayed: embedded: Advance(%v): expected a duration from 0, time does not go back", d))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current = c.current.Add(d)
	c.set()
}
