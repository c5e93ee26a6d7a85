package inspect_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestDepths has a worker note what is pending, and finds it in each grain.
func TestDepths(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for range 3 {
		_, err := b.q.Delay(welcome, 1, "en")
		b.Must(err)
	}
	b.Must(b.q.Pause(bg))
	before := time.UnixMilli(redistest.Time(t, b.Conn))
	b.work(welcome)
	for g, step := range map[inspect.Grain]time.Duration{
		inspect.Seconds: 10 * time.Second, inspect.Minutes: time.Minute, inspect.Days: 24 * time.Hour,
	} {
		var found []inspect.Depth
		b.Until("the worker has noted what is pending", func() bool {
			var err error
			found, err = b.ins.Depths(bg, queueName, g, time.Time{}, time.Time{})
			b.Must(err)
			return len(found) > 0
		})
		if d := found[0]; d.Pending != 3 || d.At.Before(before.Truncate(step)) || d.At.Truncate(step) != d.At {
			t.Errorf("grain %d: %+v, expected 3 tasks from %v on", g, found, before.Truncate(step))
		}
	}
	if _, err := b.ins.Depths(bg, queueName, inspect.Total, time.Time{}, time.Time{}); err == nil {
		t.Error("there are no depths of all times, and no error")
	}
	found, err := b.ins.Depths(bg, "nobody's", inspect.Days, time.Time{}, time.Time{})
	if len(found) > 0 || err != nil {
		t.Errorf("a queue that nobody uses: %v, %v", found, err)
	}
}

// Depths are those of the times asked for, as far as they are kept; what nobody has noted is missing.
func TestDepthsOfTimes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	now := time.UnixMilli(redistest.Time(t, b.Conn)).UTC()
	s := storeOf(t, b)
	// The pending tasks are as many as the minutes that have gone by since then.
	for _, ago := range []time.Duration{
		72 * time.Hour, 25 * time.Hour, 90 * time.Minute, 40 * time.Minute, 39 * time.Minute, 5 * time.Minute,
	} {
		b.Do("DEL", b.Name)
		if n := int(ago / time.Minute); n > 0 {
			b.Do("RPUSH", append([]any{b.Name}, slices.Repeat([]any{"m"}, n)...)...)
		}
		_, err := redisstore.NoteDepths(bg, s.Src, []*redisstore.Store{s}, now.Add(-ago))
		b.Must(err)
	}
	b.Do("DEL", b.Name)
	for _, c := range []struct {
		grain    inspect.Grain
		from, to time.Duration // before now; 0: none
		want     []int
	}{
		{inspect.Seconds, 0, 0, []int{40, 39, 5}},
		{inspect.Minutes, 0, 0, []int{90, 40, 39, 5}},
		{inspect.Minutes, 40 * time.Minute, 2 * time.Minute, []int{40, 39, 5}},
		{inspect.Minutes, 38 * time.Minute, time.Minute, []int{5}},
		{inspect.Days, 7 * 24 * time.Hour, 50 * time.Hour, []int{72 * 60}},
	} {
		var from, to time.Time
		if c.from > 0 {
			from, to = now.Add(-c.from), now.Add(-c.to)
		}
		found, err := b.ins.Depths(bg, queueName, c.grain, from, to)
		b.Must(err)
		var pending []int
		for _, d := range found {
			pending = append(pending, d.Pending)
		}
		if !slices.Equal(pending, c.want) ||
			!slices.IsSortedFunc(found, func(a, b inspect.Depth) int { return a.At.Compare(b.At) }) {
			t.Errorf("grain %d from %v to %v: %v, expected %v", c.grain, c.from, c.to, found, c.want)
		}
	}
}

// storeOf returns the store of the bench's queue.
func storeOf(t *testing.T, b *bench) *redisstore.Store {
	t.Helper()
	calls, loops, _, err := redisstore.DialSources(b.Server.URL())
	b.Must(err)
	t.Cleanup(func() { calls.Close(); loops.Close() })
	return redisstore.NewStore(calls, "", b.Name)
}

// That a queue is empty holds for five minutes, unless something else is noted.
func TestDepthsOfAnEmptyQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	now := time.UnixMilli(redistest.Time(t, b.Conn)).UTC()
	s := storeOf(t, b)
	// note notes a number of tasks, some time before the present minute.
	begin := now.Truncate(time.Minute)
	note := func(pending int, ago time.Duration) {
		t.Helper()
		b.Do("DEL", b.Name)
		for range pending {
			b.Do("RPUSH", b.Name, "m")
		}
		_, err := redisstore.NoteDepths(bg, s.Src, []*redisstore.Store{s}, begin.Add(-ago))
		b.Must(err)
	}
	note(0, 30*time.Minute)
	note(4, 18*time.Minute)
	note(0, 17*time.Minute)
	note(2, 16*time.Minute)
	note(0, time.Minute)
	b.Do("DEL", b.Name)
	found, err := b.ins.Depths(bg, queueName, inspect.Minutes, time.Time{}, now)
	b.Must(err)
	got := ""
	for _, d := range found {
		got += fmt.Sprintf("%v:%d ", begin.Sub(d.At).Minutes(), d.Pending)
	}
	if want := "30:0 29:0 28:0 27:0 26:0 18:4 17:0 16:2 1:0 0:0 "; got != want {
		t.Errorf("found %s, expected %s", got, want)
	}
	found, err = b.ins.Depths(bg, queueName, inspect.Seconds, begin.Add(-20*time.Minute), begin.Add(-10*time.Minute))
	b.Must(err)
	got = ""
	for _, d := range found {
		got += fmt.Sprintf("%v:%d ", begin.Sub(d.At).Seconds(), d.Pending)
	}
	if want := "1080:4 1020:0 1010:0 1000:0 990:0 980:0 970:0 960:2 "; got != want {
		t.Errorf("found %s, expected %s", got, want)
	}
}
