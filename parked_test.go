package delayed

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
)

func TestParkedTasksAreVisible(t *testing.T) {
	b := newBench(t)
	w := b.work(b.config())
	before := b.q.store.Now().Truncate(time.Millisecond).Add(-time.Second)
	ref := b.delay(b.fn("unknown", func(int) {}), 1)
	b.Until("it is parked", func() bool { return b.Size("_parked") == 1 })
	parked := redistest.Time(t, b.Conn) // tasks that are parked in the same millisecond are in the order of their ids
	b.Until("the clock has gone on", func() bool { return redistest.Time(t, b.Conn) > parked })
	if _, err := b.q.Enqueue(t.Context(), NewPyTask("m:f", nil, nil)); err != nil {
		t.Fatal(err)
	}
	b.Until("both are parked", func() bool { return b.Size("_parked") == 2 })
	page, total, err := b.q.Parked(t.Context(), 0, 10)
	if err != nil || total != 2 || len(page) != 2 {
		t.Fatalf("found %+v of %d, %v", page, total, err)
	}
	task := page[0]
	if task.ID != ref.ID() || task.State != StateParked || task.Function != b.Name+".unknown" ||
		task.Reason != "unknown function" || task.Worker != w.ID() ||
		task.At.Before(before) || task.Due.Sub(task.At) < lifecycle.ParkedLife-time.Minute ||
		task.Due.Sub(task.At) > lifecycle.ParkedLife+time.Minute {
		t.Errorf("found %+v", task)
	}
	if page[1].Function != "m:f" || page[1].Reason != "python" {
		t.Errorf("found %+v", page[1])
	}
	if page, total, err = b.q.Parked(t.Context(), 1, 1); err != nil || total != 2 || len(page) != 1 ||
		page[0].Function != "m:f" {
		t.Errorf("second page: found %+v of %d, %v", page, total, err)
	}
	for _, wrong := range [][2]int{{-1, 1}, {0, 0}, {0, redisstore.MaxListPage + 1}} {
		if _, _, err := b.q.Parked(t.Context(), wrong[0], wrong[1]); err == nil ||
			!strings.Contains(err.Error(), "1 to 1000") {
			t.Errorf("Parked(%d, %d): found %v", wrong[0], wrong[1], err)
		}
	}
}

// TestWorkersOfOneQueueKnowDifferentFunctions: each task is run at once by a worker that knows its function, however
// many of them a larger worker claims that does not, and the log tells of each function once.
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
		b.Must(w.Register(fn))
		w.engine.Groups[0].Mover.Every = time.Hour // nothing but the signal tells
		workers = append(workers, b.start(w))
	}
	b.Until("both hear signals", func() bool {
		n, err := redis.Values(b.Do("PUBSUB", "NUMSUB", b.Name+"_signals"), nil)
		return err == nil && n[1] == int64(1) // over one connection
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
	// One after the other: whoever claims it, and parks it or not, it runs within 50 ms in the mean.
	start = time.Now()
	for i := range 40 {
		b.delay([]any{f, g}[i%2])
		b.Until("it has run", func() bool { return ran.Load() == 2*each+int64(i)+1 })
	}
	if took := time.Since(start); took > 40*50*time.Millisecond {
		t.Errorf("40 tasks, each behind the other, took %v", took)
	}
	for _, line := range []string{"task parked", "parked tasks were claimed"} {
		if n := strings.Count(b.log.String(), line); n > 2*len(workers) {
			t.Errorf("%d lines with %q:\n%s", n, line, b.log)
		}
	}
	b.Idle()
	if b.Size("_parked")+b.Size("_tasks")+b.Size("_info") != 0 {
		t.Errorf("left: %v", redistest.Dump(t, b.Conn, b.Name))
	}
	b.Check(redistest.Invariants{})
}
