package engine

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/engine/fetch"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// Workers that lack a field of a parked task leave it alone, even if each lacks a different one; a worker that has all
// fields takes it.
func TestParkedForFieldsGoesToNobodyElse(t *testing.T) {
	type left struct{ A, B int }
	type right struct{ A, C int }
	type full struct{ A, B, C int }
	type other struct { // it has the fields, but with other types
		A, B int
		C    string
	}
	b := newBench(t)
	ran := make(chan full, 10)
	lefts := b.work(b.config(), b.fn("F", func(left) {}))
	sender := b.fn("F", func(v full) { ran <- v })
	ref := b.delay(sender, full{1, 2, 3})
	b.Until("it is parked", func() bool { return b.Size("_parked") == 1 })
	rights, others := b.work(b.config(), b.fn("F", func(right) {})), b.work(b.config(), b.fn("F", func(other) {}))
	for range 5 {
		for _, w := range []*started{lefts, rights, others} {
			ids, err := fetch.RunnableHere(t.Context(), b.q.store, &w.registry, b.parked())
			if err != nil || len(ids) != 0 {
				t.Errorf("released %v, %v", ids, err)
			}
			w.slotGroups[0].mover.RunNow()
		}
	}
	b.Until("each has looked", func() bool {
		return lefts.slotGroups[0].mover.Checked.Load() && rights.slotGroups[0].mover.Checked.Load() &&
			others.slotGroups[0].mover.Checked.Load()
	})
	if n := b.counters()["parked"]; n != 1 || b.Size("_parked") != 1 {
		t.Errorf("parked %d times, %d are", n, b.Size("_parked"))
	}
	info := wire.ParseInfo([]byte(b.Hash("_info")[ref.ID()]))
	if info.Reason != state.ReasonUnknownFields || !slices.Equal(info.Fields, []string{"1.C"}) || info.Deaths != 0 ||
		info.Attempts != 0 {
		t.Errorf("info %+v", info)
	}
	for _, w := range []*started{lefts, rights, others} { // otherwise they might claim it and park it again
		w.mustStop()
	}
	b.work(b.config(), sender)
	if got := await(b, "the task", ran); got != (full{1, 2, 3}) {
		t.Errorf("ran with %+v", got)
	}
	b.Idle()
	if c := b.counters(); c["failed"]+c["retried"]+c["archived"] != 0 {
		t.Errorf("counters %v", c)
	}
	b.Check(redistest.Invariants{})
}

// parked returns the first page of parked tasks.
func (b *bench) parked() []redisstore.Filed {
	b.T.Helper()
	page, err := b.q.store.ParkedPage(b.T.Context(), 0, redisstore.ParkedPage, false)
	if err != nil {
		b.T.Fatal(err)
	}
	return page
}

// TestWorkersOfOneQueueKnowDifferentFunctions: workers that know a function run its tasks at once, however many of
// these a larger worker that does not know it claims. The log names each function once.
func TestWorkersOfOneQueueKnowDifferentFunctions(t *testing.T) {
	b := newBench(t)
	const each = 250
	var ran atomic.Int64
	f, g := b.fn("f", func() { ran.Add(1) }), b.fn("g", func() { ran.Add(1) })
	var workers []*started
	for fn, concurrency := range map[*Function]int{f: 50, g: 4} {
		cfg := b.config()
		cfg.Concurrency = concurrency
		w, err := NewWorker(b.rdb, cfg)
		b.Must(err)
		b.Must(w.Register([]*Function{fn}, nil))
		w.slotGroups[0].mover.Every = time.Hour // only the signal wakes the worker
		workers = append(workers, b.start(w))
	}
	b.Until("both hear signals", func() bool {
		n, err := redis.Values(b.Do("PUBSUB", "NUMSUB", b.Name+"_signals"), nil)
		return err == nil && n[1] == int64(1) // all on one connection
	})
	start := time.Now()
	for range each {
		b.delay(f)
		b.delay(g)
	}
	b.Until("all have run", func() bool { return ran.Load() == 2*each })
	if n := b.counters()["parked"]; n > each+each {
		t.Errorf("%d parkings of %d tasks", n, 2*each)
	}
	t.Logf("%d tasks in %v, %d of them parked", 2*each, time.Since(start), b.counters()["parked"])
	if b.counters()["parked"] == 0 {
		t.Fatal("nothing was parked, so nothing was shown")
	}
	// One after the other: whichever worker claims a task, and parks it or not, it runs at once, and not only when
	// somebody looks at parked tasks for another reason.
	alone := time.Now()
	for i := range 40 {
		b.delay([]*Function{f, g}[i%2])
		b.Until("it has run", func() bool { return ran.Load() == 2*each+int64(i)+1 })
	}
	if took := time.Since(alone); took > 40*250*time.Millisecond {
		limits.Errorf(t, "40 tasks, each behind the other, took %v", took)
	}
	seconds := 1 + int(time.Since(start)/time.Second) // each line comes once a second, for each function
	for _, line := range []string{"task parked", "claimed parked tasks"} {
		if n := strings.Count(b.log.String(), line); n == 0 || n > 2*len(workers)*seconds {
			t.Errorf("%d lines with %q:\n%s", n, line, b.log)
		}
	}
	b.Idle()
	if b.Size("_parked")+b.Size("_tasks")+b.Size("_info") != 0 {
		t.Errorf("left: %v", redistest.Dump(t, b.Conn, b.Name))
	}
	b.Check(redistest.Invariants{})
}
