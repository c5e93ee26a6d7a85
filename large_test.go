package delayed_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// oversized is a message that no worker reads.
var oversized = strings.Repeat("x", wire.WorkerLimits.Bytes+1)

// TestLargeMessageAmongOthers archives a message that is too large, and runs those before and after it.
func TestLargeMessageAmongOthers(t *testing.T) {
	b := newBench(t)
	ran := make(chan int, 10)
	f := b.fn("f", func(i int) { ran <- i })
	w, h := b.listened(b.config())
	if err := w.Register(f); err != nil {
		t.Fatal(err)
	}
	b.delay(f, 1)
	b.Do("RPUSH", b.Name, oversized)
	b.delay(f, 2)
	s := b.start(w)
	sum := await(b, "a task", ran) + await(b, "a task", ran)
	b.Until("it is archived", func() bool { return b.Size("_archived") == 1 })
	s.mustStop()
	if sum != 3 {
		t.Errorf("ran other tasks than 1 and 2")
	}
	if got := h.of(event.TaskArchived); len(got) != 1 || got[0].Reason != "too large" || got[0].Err == nil {
		t.Errorf("events %+v", got)
	}
	page, _, err := b.q.Archived(t.Context(), 0, 10)
	if err != nil || len(page) != 1 || page[0].Reason != "too large" ||
		!strings.Contains(page[0].Error, fmt.Sprint(len(oversized), " bytes")) {
		t.Fatalf("archived %+v, %v", page, err)
	}
	ref := b.q.Ref(page[0].ID)
	if b.Hash("_tasks")[page[0].ID] != oversized {
		t.Error("the message is not archived as it was")
	}
	if info, err := ref.Info(t.Context()); err != nil || info.State != state.Archived || info.Error != page[0].Error {
		t.Errorf("info %+v, %v", info, err)
	}
	for _, again := range []error{ref.RunAgain(t.Context()), ref.RunAgainWith(t.Context(), delayed.Call(f, 3))} {
		if again == nil || errors.Is(again, delayed.ErrNotArchived) || !strings.Contains(again.Error(), "delete it") {
			t.Errorf("running it again: %v", again)
		}
	}
	if n, err := b.q.RunArchivedAgain(t.Context(), nil); n != 0 || err != nil {
		t.Errorf("%d ran again, %v", n, err)
	}
	if err := ref.Delete(t.Context()); err != nil {
		t.Error(err)
	}
	b.Check(redistest.Invariants{Idle: true})
}

// TestLargeParkedTask archives a parked task that is too large. Its info contains the function, so a worker finds it.
func TestLargeParkedTask(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func() {})
	info := wire.Info{Reason: "unknown function", Function: b.Name + ".f"}
	b.Do("HSET", b.Name+"_tasks", "p", oversized)
	b.Do("HSET", b.Name+"_info", "p", info.Encode())
	b.Do("ZADD", b.Name+"_parked", time.Now().Add(time.Hour).UnixMilli(), "p")
	w, h := b.listened(b.config())
	if err := w.Register(f); err != nil {
		t.Fatal(err)
	}
	s := b.start(w)
	b.Until("it is archived", func() bool { return b.Size("_archived") == 1 })
	s.mustStop()
	if got := h.of(event.TaskArchived); len(got) != 1 || got[0].Reason != "too large" {
		t.Errorf("events %+v", got)
	}
	b.Check(redistest.Invariants{Idle: true})
}

// TestLargeDueTasks archives due tasks that are too large, and moves the others.
func TestLargeDueTasks(t *testing.T) {
	b := newBench(t)
	for set, id := range map[string]string{"_scheduled": "s", "_retry": "r"} {
		b.Do("HSET", b.Name+"_tasks", id, oversized, id+"2", "rubbish")
		b.Do("ZADD", b.Name+set, 1000, id, 1000, id+"2")
	}
	cfg := b.config()
	cfg.ArchiveFor = time.Hour
	w, h := b.listened(cfg)
	s := b.start(w)
	b.Until("all are archived", func() bool { return b.Size("_archived") == 4 })
	s.mustStop()
	if got := h.of(event.TaskArchived); len(got) != 4 {
		t.Errorf("events %+v", got)
	}
	for _, id := range []string{"s", "r"} {
		info, err := b.q.Ref(id).Info(t.Context())
		if err != nil || info.State != state.Archived || info.Reason != "too large" ||
			time.Until(info.Due) > cfg.ArchiveFor {
			t.Errorf("%s: %+v, %v, expected to be kept for %v", id, info, err, cfg.ArchiveFor)
		}
	}
	if n := b.counters()["archived"]; n != 4 {
		t.Errorf("%d are counted as archived", n)
	}
}

// TestLargeMemberOfAGroup combines the other members into a call, and archives the one that is too large.
func TestLargeMemberOfAGroup(t *testing.T) {
	b := newBench(t)
	ran := make(chan []int, 10)
	f := b.fn("f", func(list ...int) { ran <- list })
	q := b.q.With(delayed.Group("g"), delayed.Gather(delayed.GatherPolicy{Grace: 50 * time.Millisecond}))
	b.delayWith(q, f, 1)
	group := b.Do("ZRANGE", b.Name+"_groups", 0, 0)
	name := fmt.Sprintf("%s", group.([]any)[0]) //nolint:errcheck // it is one
	b.Do("RPUSH", b.Name+"_group:"+name, oversized)
	b.delayWith(q, f, 2)
	if groups, err := b.groups(); err != nil || len(groups) != 1 || groups[0].Size != 3 ||
		groups[0].Key != "g" {
		t.Errorf("groups %+v, %v", groups, err)
	}
	w := b.work(b.config(), f)
	first, second := await(b, "a call", ran), await(b, "a call", ran)
	b.Until("it is archived", func() bool { return b.Size("_archived") == 1 })
	w.mustStop()
	if fmt.Sprint(first, second) != "[1] [2]" {
		t.Errorf("called with %v and %v", first, second)
	}
}
