package inspect_test

import (
	"math"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
)

func TestWanted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		b      inspect.Backlog
		target time.Duration
		want   int
	}{
		{"nothing", inspect.Backlog{}, time.Minute, 0},
		{"nothing, with workers", inspect.Backlog{PerTask: 1, Workers: 2, Executors: 20}, time.Minute, 0},
		{"something due later", inspect.Backlog{PerTask: 1, Later: 5}, time.Minute, 1},
		{"something runs", inspect.Backlog{PerTask: 1, Active: 5}, time.Minute, 1},
		{"a load alone", inspect.Backlog{PerTask: time.Second, Active: 5, Load: 4.2}, time.Minute, 5},
		{"600 s of work", inspect.Backlog{PerTask: time.Second, Pending: 600, Load: 4}, time.Minute, 14},
		{"in no time", inspect.Backlog{PerTask: time.Millisecond, Pending: 7}, 0, 7},
		{"less than a target", inspect.Backlog{PerTask: time.Millisecond, Pending: 7}, time.Minute, 1},
		{"never run", inspect.Backlog{Pending: 1e6}, time.Minute, 1},
		{"never run, with workers", inspect.Backlog{Pending: 1e6, Executors: 20}, time.Minute, 20},
		{"more than there is time", inspect.Backlog{Pending: math.MaxInt32, PerTask: math.MaxInt64}, 1, math.MaxInt32},
	} {
		if got := c.b.Wanted(c.target); got != c.want {
			t.Errorf("%s: wants %d executors, expected %d", c.name, got, c.want)
		}
	}
	b := inspect.Backlog{Pending: 600, PerTask: time.Second, Executors: 20}
	if b.Work() != 10*time.Minute || b.Drain() != 30*time.Second {
		t.Errorf("work %v, drain %v", b.Work(), b.Drain())
	}
	b.Executors = 0
	if b.Drain() != math.MaxInt64 {
		t.Errorf("without executors it drains in %v", b.Drain())
	}
	b.Pending, b.PerTask = math.MaxInt32, math.MaxInt64
	if b.Work() != math.MaxInt64 {
		t.Errorf("all the time there is, and more: %v", b.Work())
	}
}

// TestBacklog measures a queue whose tasks run, run for long, wait, and are due later.
func TestBacklog(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, err := b.ins.Backlog(bg, "nobody"); err == nil {
		t.Error("no such queue is no error")
	}
	release := make(chan struct{})
	quick := delayed.Func(func() { <-time.After(time.Millisecond) }, delayed.Name("quick"))
	long := delayed.Func(func() { <-release }, delayed.Name("long"))
	w := b.work(quick, long)
	t.Cleanup(func() { close(release) })
	for range 20 {
		_, err := b.q.Delay(quick)
		b.Must(err)
	}
	_, err := b.q.With(delayed.In(time.Hour)).Delay(quick)
	b.Must(err)
	var got *inspect.Backlog
	look := func(what string, ok func() bool) {
		t.Helper()
		b.Until(what, func() bool {
			got, err = b.ins.Backlog(bg, queueName)
			b.Must(err)
			return ok()
		})
	}
	look("all are counted", func() bool { return got.PerTask > 0 && got.Active == 0 })
	if got.PerTask < time.Millisecond || got.PerTask > 10*time.Second || got.Later != 1 || got.Workers != 1 ||
		got.Executors != 2 || got.Load <= 0 || got.Wanted(time.Minute) < 1 {
		t.Errorf("quick tasks: %+v", got)
	}
	_, err = b.q.Delay(long)
	b.Must(err)
	_, err = b.q.Delay(long)
	b.Must(err)
	look("long ones are part of the load", func() bool { return got.Load >= 2 })
	if w.Status().Busy != 2 || got.Wanted(time.Minute) < 2 {
		t.Errorf("%d run, %+v", w.Status().Busy, got)
	}
	for range 5 {
		_, err := b.q.Delay(quick)
		b.Must(err)
	}
	look("others wait", func() bool { return got.Pending+got.Active >= 5 })
}
