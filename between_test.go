package delayed_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/seam"
)

// between returns a source that calls a function once, right before the first call of a script that writes an entry.
func between(src delayed.Source, then func()) delayed.Source {
	var once sync.Once
	return redistest.Intercept(src, func(cmd string, args []any, send func() (any, error)) (any, error) {
		if cmd == "EVALSHA" && (args[0] == redisstore.ScriptEntry.Sha || args[0] == redisstore.ScriptTick.Sha) {
			once.Do(then)
		}
		return send()
	})
}

// TestChangesBetweenReadAndWrite makes one change of an entry after another one has read it and before that one writes
// it: both changes hold, or the later one returns why not.
func TestChangesBetweenReadAndWrite(t *testing.T) {
	type change func(b *bench, rdb *delayed.Redis) error
	set := func(b *bench, rdb *delayed.Redis) error {
		return b.periodicOn(rdb).Set(bg, delayed.Entry{Name: "e", Spec: "@every 2h"})
	}
	create := func(b *bench, rdb *delayed.Redis) error {
		return b.periodicOn(rdb).Set(bg,
			delayed.Entry{Name: "e", Spec: "@every 2h", Task: delayed.Call(b.fn("other", func() {}))})
	}
	pause := func(b *bench, rdb *delayed.Redis) error { return b.periodicOn(rdb).Pause(bg, "e") }
	resume := func(b *bench, rdb *delayed.Redis) error { return b.periodicOn(rdb).Resume(bg, "e") }
	remove := func(b *bench, rdb *delayed.Redis) error { return b.periodicOn(rdb).Remove(bg, "e") }
	run := func(b *bench, rdb *delayed.Redis) error { return second(b.periodicOn(rdb).RunNow(bg, "e")) }
	tick := func(b *bench, rdb *delayed.Redis) error {
		return seam.Tick(bg, b.scheduler(rdb, ""))
	}
	for _, c := range []struct {
		name          string
		paused        bool // paused at the start
		outer, inner  change
		err           error
		want          string // the expected entry
		tasks, lately int    // pending tasks afterwards, and how many of them belong to the changed entry
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
		{name: "remove while it is paused", outer: pause, inner: remove, err: delayed.ErrNoEntry},
		{name: "remove while it runs now", outer: run, inner: remove, err: delayed.ErrNoEntry},
		{name: "remove while it ticks", outer: tick, inner: remove},
		{name: "remove while it is set", outer: create, inner: remove, want: "@every 2h"},
		{name: "set while it is removed", outer: remove, inner: set},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			p := b.periodic()
			b.Must(p.Set(bg, delayed.Entry{Name: "e", Spec: "@every 1h", Task: delayed.Call(b.fn("first", func() {}))}))
			if c.paused {
				b.Must(p.Pause(bg, "e"))
			} else {
				b.rewind("e", time.Hour) // so that one tick is due
			}
			came := false
			src := between(b.src, func() {
				came = true
				b.Must(c.inner(b, b.rdb))
			})
			if err := c.outer(b, delayed.FromSource(src)); !errors.Is(err, c.err) || !came {
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
