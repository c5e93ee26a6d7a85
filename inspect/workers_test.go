package inspect_test

import (
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

// A worker says what it is, and what it has been running for a while.
func TestWorkersSayWhatTheyDo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	running, release := make(chan struct{}, 1), make(chan struct{})
	block := delayed.Func(func(int) { running <- struct{}{}; <-release }, delayed.Name("block"))
	began := time.Now() // the task starts later
	_, err := b.q.With(delayed.TaskID("long")).Delay(block, 1)
	b.Must(err)
	w := b.work(block, welcome)
	redistest.Await(b.Bench, "the task", running)
	entered := time.Now()
	var me inspect.Worker
	look := func() inspect.Worker {
		workers, err := b.ins.Workers(bg)
		b.Must(err)
		if len(workers) != 1 || workers[0].ID != w.ID() {
			t.Fatalf("%+v, expected worker %s", workers, w.ID())
		}
		return workers[0]
	}
	b.Until("it says what runs", func() bool { me = look(); return len(me.Running) > 0 })
	if took := time.Since(began); took < 900*time.Millisecond {
		t.Errorf("it tells of a task that has run for %v", took)
	}
	if me.Concurrency != 2 || me.Order != "mail (strict)" || me.State != state.Running ||
		me.Version == "" || me.Program == "" || me.Memory < 1<<20 || me.Memory > 1<<40 ||
		time.Since(me.Started) > time.Minute || me.MoreRunning != 0 {
		t.Errorf("%+v", me)
	}
	if r := me.Running[0]; r.ID != "long" || r.Function != "block" || r.Queue != queueName ||
		began.Sub(r.Started) > time.Minute || r.Started.Sub(entered) > time.Minute {
		t.Errorf("it runs %+v, since a time from %v to %v", r, began, entered)
	}
	active := b.tasks(inspect.Query{State: state.Active})
	if len(active) != 1 || !active[0].Started.Equal(me.Running[0].Started) {
		t.Errorf("active: %+v, expected that it started at %v", active, me.Running[0].Started)
	}
	b.Must(b.q.Worker(w.ID()).Pause(bg))
	b.Until("it says that it is paused", func() bool { return look().State == state.Paused })
	b.Must(b.q.Worker(w.ID()).Resume(bg))
	close(release)
	b.Until("it says that nothing runs", func() bool { me = look(); return len(me.Running) == 0 })
	if me.State != state.Running {
		t.Errorf("%v", me.State)
	}
}

// TestWorkerInShort: what lists show of a worker.
func TestWorkerInShort(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	alive := []inspect.WorkerQueue{{Name: "a", Claims: 3}, {Name: "b", Alive: time.Second, Claims: 4}}
	for _, tt := range []struct {
		condition string
		claims    int
		longest   string
		w         inspect.Worker
	}{
		{"dead", 0, "", inspect.Worker{}},
		{"dead", 3, "", inspect.Worker{Queues: alive[:1], State: state.Running}},
		{"alive", 7, "", inspect.Worker{Queues: alive}},
		{"stopping", 7, "old", inspect.Worker{Queues: alive, State: state.Stopping, Running: []inspect.Running{
			{ID: "new", Started: at},
			{ID: "old", Started: at.Add(-time.Hour)},
			{ID: "mid", Started: at.Add(-time.Minute)},
		}}},
	} {
		id := ""
		if r := tt.w.Longest(); r != nil {
			id = r.ID
		}
		if got := tt.w.Condition(); got != tt.condition || tt.w.Claims() != tt.claims || id != tt.longest {
			t.Errorf("%+v: %s with %d claims, %q runs longest", tt.w, got, tt.w.Claims(), id)
		}
	}
}
