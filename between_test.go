package delayed

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redisstore"
)

// betweenSource calls a function once, right before the first call of a script that writes.
type betweenSource struct {
	Source
	then func()
	once sync.Once
}

func (s *betweenSource) Conn(ctx context.Context, key string) (redis.Conn, error) {
	c, err := s.Source.Conn(ctx, key)
	return &betweenConn{c, s}, err
}

type betweenConn struct {
	redis.Conn
	s *betweenSource
}

func (c *betweenConn) DoWithTimeout(timeout time.Duration, cmd string, args ...any) (any, error) {
	c.before(cmd, args)
	return redis.DoWithTimeout(c.Conn, timeout, cmd, args...)
}

func (c *betweenConn) DoContext(ctx context.Context, cmd string, args ...any) (any, error) {
	c.before(cmd, args)
	return redis.DoContext(c.Conn, ctx, cmd, args...)
}

func (c *betweenConn) ReceiveWithTimeout(timeout time.Duration) (any, error) {
	return redis.ReceiveWithTimeout(c.Conn, timeout)
}

func (c *betweenConn) ReceiveContext(ctx context.Context) (any, error) {
	return redis.ReceiveContext(c.Conn, ctx)
}

func (c *betweenConn) before(cmd string, args []any) {
	if cmd == "EVALSHA" && (args[0] == redisstore.ScriptEntry.Sha || args[0] == redisstore.ScriptTick.Sha) {
		c.s.once.Do(c.s.then)
	}
}

// TestChangesBetweenReadAndWrite makes one change of an entry between the moment at which another one has read it and
// that at which it writes: both hold, or the later one says why not.
func TestChangesBetweenReadAndWrite(t *testing.T) {
	type change func(b *bench, p *PeriodicControl) error
	set := func(b *bench, p *PeriodicControl) error { return p.Set(bg, Entry{Name: "e", Spec: "@every 2h"}) }
	create := func(b *bench, p *PeriodicControl) error {
		return p.Set(bg, Entry{Name: "e", Spec: "@every 2h", Task: Call(b.fn("other", func() {}))})
	}
	pause := func(b *bench, p *PeriodicControl) error { return p.Pause(bg, "e") }
	resume := func(b *bench, p *PeriodicControl) error { return p.Resume(bg, "e") }
	remove := func(b *bench, p *PeriodicControl) error { return p.Remove(bg, "e") }
	run := func(b *bench, p *PeriodicControl) error { return second(p.RunNow(bg, "e")) }
	tick := func(b *bench, p *PeriodicControl) error {
		s := b.scheduler(b.rdb, "")
		s.store = p.queue.store
		return second(s.enqueueDue(bg))
	}
	for _, c := range []struct {
		name          string
		paused        bool // at first
		outer, inner  change
		err           error
		want          string // what the entry is then
		tasks, lately int    // tasks that are pending then; of them, those of the changed entry
	}{
		{name: "pause while it is set", outer: set, inner: pause, want: "@every 2h paused"},
		{name: "set while it is paused", outer: pause, inner: set, want: "@every 2h paused"},
		{name: "resume while it is set", paused: true, outer: set, inner: resume, want: "@every 2h"},
		{name: "set while it is resumed", paused: true, outer: resume, inner: set, want: "@every 2h"},
		{name: "pause while it runs now", outer: run, inner: pause, want: "@every 1h paused", tasks: 1},
		{name: "resume while it runs now", paused: true, outer: run, inner: resume, want: "@every 1h", tasks: 1},
		{name: "run now while it is paused", outer: pause, inner: run, want: "@every 1h paused", tasks: 1},
		{name: "run now while it is resumed", paused: true, outer: resume, inner: run, want: "@every 1h", tasks: 1},
		{name: "run now while it is set", outer: set, inner: run, want: "@every 2h", tasks: 1},
		{name: "set while it runs now", outer: run, inner: create, want: "@every 2h", tasks: 1, lately: 1},
		{name: "pause while it ticks", outer: tick, inner: pause, want: "@every 1h paused"},
		{name: "set while it ticks", outer: tick, inner: set, want: "@every 2h"},
		{name: "run now while it ticks", outer: tick, inner: run, want: "@every 1h", tasks: 2},
		{name: "tick while it is paused", outer: pause, inner: tick, want: "@every 1h paused", tasks: 1},
		{name: "remove while it is paused", outer: pause, inner: remove, err: ErrNoEntry},
		{name: "remove while it runs now", outer: run, inner: remove, err: ErrNoEntry},
		{name: "remove while it ticks", outer: tick, inner: remove},
		{name: "remove while it is set", outer: create, inner: remove, want: "@every 2h"},
		{name: "set while it is removed", outer: remove, inner: set},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			p := b.periodic()
			b.Must(p.Set(bg, Entry{Name: "e", Spec: "@every 1h", Task: Call(b.fn("first", func() {}))}))
			if c.paused {
				b.Must(p.Pause(bg, "e"))
			} else {
				b.rewind("e", time.Hour) // so that one tick is due
			}
			came := false
			src := &betweenSource{Source: b.rdb.loops, then: func() {
				came = true
				b.Must(c.inner(b, p))
			}}
			outer := b.periodic()
			outer.queue.store = redisstore.NewStore(src, "", b.Name)
			if err := c.outer(b, outer); !errors.Is(err, c.err) || !came {
				t.Errorf("found the error %v, expected %v; the other came in between: %v", err, c.err, came)
			}
			all, err := p.List(bg)
			b.Must(err)
			found, ticks := "", 0
			for _, e := range all {
				found = e.Spec
				if ticks = 1; e.Paused {
					found, ticks = found+" paused", 0
				}
				if e.Paused != e.Next.IsZero() {
					t.Errorf("found %+v", e)
				}
			}
			if found != c.want || b.Size("_ticks") != ticks {
				t.Errorf("the entry is %q, expected %q; %d times are noted", found, c.want, b.Size("_ticks"))
			}
			lately := 0
			for _, m := range b.pending() {
				if strings.HasSuffix(m.Path, ".other") {
					lately++
				}
			}
			if ids := b.pendingIDs(); len(ids) != c.tasks || lately != c.lately {
				t.Errorf("%v are pending, expected %d tasks; %d of the changed entry, expected %d", ids, c.tasks,
					lately, c.lately)
			}
		})
	}
}
