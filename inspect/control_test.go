package inspect_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// acts returns the audit log, the oldest act first.
func (b *bench) acts() string {
	b.T.Helper()
	records, err := b.ins.Audit(bg, 0, 100)
	b.Must(err)
	var acts []string
	for _, r := range slices.Backward(records) {
		text := fmt.Sprint(r.Action, " ", r.Queue, " ", r.Target, " ", r.Done)
		acts = append(acts, strings.Join(strings.Fields(text), " "))
	}
	return strings.Join(acts, "; ")
}

func joinTexts(list ...string) error { return nil }

// TestControlsAreNoted steers queues, workers, entries and groups, each of which the audit log tells of.
func TestControlsAreNoted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := b.q.Delay(welcome, 1, "en")
	b.Must(err)
	b.Must(b.ins.Pause(bg, queueName))
	if q, err := b.ins.Queue(bg, queueName); err != nil || q.Paused.IsZero() {
		t.Errorf("found %+v, %v", q, err)
	}
	b.Must(b.ins.SetWeight(bg, queueName, 5))
	b.Must(b.ins.SetWeight(bg, queueName, 0))
	ref, err := b.ins.Enqueue(bg, queueName, delayed.NewGoTask("a.b", 1), delayed.In(time.Hour))
	b.Must(err)
	if s, err := ref.State(bg); s != state.Scheduled || err != nil {
		t.Errorf("found %v, %v", s, err)
	}
	b.Must(ref.Cancel(bg))
	w := b.work(welcome, joinTexts)
	b.Until("the worker is known", func() bool {
		workers, err := b.ins.Workers(bg)
		return err == nil && len(workers) == 1 && workers[0].State == state.Running
	})
	b.Must(b.ins.OrderWorker(bg, w.ID(), inspect.OrderPause))
	b.Until("the worker pauses", func() bool { return w.Status().State == state.Paused })
	b.Must(b.ins.OrderWorker(bg, w.ID(), inspect.OrderResume))
	b.Must(b.ins.Resume(bg, queueName))
	b.Idle()
	b.Must(b.ins.Restart(bg, queueName))
	want := "pause mail 0; set weight to 5 mail 0; set weight to 0 mail 0; enqueue mail a.b 1; pause worker " + w.ID() +
		" 0; resume worker " + w.ID() + " 0; resume mail 0; restart mail 0"
	if got := b.acts(); got != want {
		t.Errorf("found %s, expected %s", got, want)
	}
}

func TestEntriesAreSteered(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := delayed.NewQueue("other", b.rdb)
	for _, q := range []*delayed.Queue{b.q, other} {
		b.Must(q.Periodic().Set(bg, delayed.Entry{Name: "daily", Spec: "@daily", Task: delayed.Call(welcome, 1, "en")}))
		_, err := q.Delay(welcome, 1, "en") // makes the queue known
		b.Must(err)
	}
	entries, err := b.ins.Entries(bg)
	if err != nil || len(entries) != 2 || entries[0].Queue != queueName || entries[1].Queue != "other" {
		t.Fatalf("found %+v, %v", entries, err)
	}
	ref, err := b.ins.RunEntry(bg, queueName, "daily")
	b.Must(err)
	if history, err := b.ins.EntryHistory(bg, queueName, "daily"); err != nil {
		t.Errorf("found %v, %v", history, err)
	}
	b.Must(b.ins.PauseEntry(bg, queueName, "daily"))
	if entries, err = b.ins.Entries(bg, queueName); err != nil || len(entries) != 1 || !entries[0].Paused {
		t.Errorf("found %+v, %v", entries, err)
	}
	b.Must(b.ins.ResumeEntry(bg, queueName, "daily"))
	b.Must(b.ins.RemoveEntry(bg, queueName, "daily"))
	if err := b.ins.PauseEntry(bg, queueName, "daily"); !errors.Is(err, delayed.ErrNoEntry) {
		t.Errorf("found %v", err)
	}
	want := "run entry mail daily 1; pause entry mail daily 0; resume entry mail daily 0; remove entry mail daily 0"
	if got := b.acts(); got != want {
		t.Errorf("found %s, expected %s", got, want)
	}
	records, err := b.ins.Audit(bg, 3, 1)
	if err != nil || len(records) != 1 || len(records[0].IDs) != 1 || records[0].IDs[0] != ref.ID() {
		t.Errorf("found %+v, %v", records, err)
	}
}

// TestFireGroup fires one group of two functions with the same key, and then the other.
func TestFireGroup(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	calls := make(chan []string, 10)
	add := delayed.Func(func(list ...string) { calls <- list }, delayed.Name("x.Add"))
	more := delayed.Func(func(list ...string) { calls <- list }, delayed.Name("x.More"))
	q := b.q.With(delayed.Group("k"))
	for _, call := range []struct {
		fn   *delayed.Function
		text string
	}{{add, "a"}, {add, "b"}, {more, "c"}} {
		_, err := q.Delay(call.fn, call.text)
		b.Must(err)
	}
	b.work(add, more)
	groups, err := b.ins.Groups(bg)
	if err != nil || len(groups) != 2 || groups[0].Queue != queueName || groups[0].Key != "k" {
		t.Fatalf("found %+v, %v", groups, err)
	}
	if _, err := b.ins.FireGroup(bg, queueName, "none", ""); !errors.Is(err, inspect.ErrNotFound) {
		t.Errorf("found %v", err)
	}
	for _, c := range []struct{ function, want string }{{"Add", "[a b]"}, {"", "[c]"}} {
		n, err := b.ins.FireGroup(bg, queueName, "k", c.function)
		if err != nil || n != 1 {
			t.Errorf("fired %d, %v", n, err)
		}
		select {
		case got := <-calls:
			if fmt.Sprint(got) != c.want {
				t.Errorf("found the call %v, expected %s", got, c.want)
			}
		case <-time.After(time.Minute):
			t.Fatal("the group was not fired")
		}
	}
	if got := b.acts(); got != "fire group mail k 1; fire group mail k 1" {
		t.Errorf("found %s", got)
	}
	b.Idle()
}

// TestUnknownThingsAreNotSteered finds that nothing is noted of what did not happen.
func TestUnknownThingsAreNotSteered(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := b.q.Delay(welcome, 1, "en")
	b.Must(err)
	for i, err := range []error{
		b.ins.Pause(bg, "nobody"), b.ins.Resume(bg, "nobody"), b.ins.Restart(bg, "nobody"),
		b.ins.SetWeight(bg, "nobody", 1), b.ins.OrderWorker(bg, "nobody", inspect.OrderStop),
		b.ins.PauseEntry(bg, "nobody", "x"),
	} {
		if !errors.Is(err, inspect.ErrNotFound) {
			t.Errorf("error %d is %v", i, err)
		}
	}
	if err := b.ins.OrderWorker(bg, "x", "dance"); err == nil || !strings.Contains(err.Error(), `found "dance"`) {
		t.Errorf("found %v", err)
	}
	if err := b.ins.SetWeight(bg, queueName, -1); !errors.Is(err, delayed.ErrArguments) {
		t.Errorf("found %v", err)
	}
	//delayed:allow the test expects the refusal
	if _, err := b.ins.Enqueue(bg, queueName, delayed.NewGoTask("")); !errors.Is(err, delayed.ErrFunction) {
		t.Errorf("found %v", err)
	}
	if got := b.acts(); got != "" {
		t.Errorf("found the records %s", got)
	}
}

// TestDeleteQueue deletes a queue that has had everything.
func TestDeleteQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	left := func() (keys []string) {
		t.Helper()
		keys, err := redis.Strings(b.Conn.Do("KEYS", b.Name+"*"))
		b.Must(err)
		return keys
	}
	t.Run("", func(t *testing.T) {
		in := *b
		bench := *b.Bench
		bench.T = t
		in.Bench = &bench
		in.work(fails, delayed.Func(func() int { return 42 }, delayed.Name("answer")))
		for _, opts := range [][]delayed.Option{
			{delayed.MaxRetry(0)}, {delayed.Unique(time.Hour)}, {delayed.In(time.Hour)},
		} {
			_, err := b.q.With(opts...).Delay(fails, len(opts)+1)
			b.Must(err)
		}
		_, err := b.q.With(delayed.Group("g")).Delay(gathered, []int{1})
		b.Must(err)
		_, err = b.q.Delay(welcome, 1, "en")
		b.Must(err)
		b.Must(b.q.Periodic().Set(bg, delayed.Entry{Name: "e", Spec: "@hourly", Task: delayed.Call(welcome, 1, "en")}))
		b.Must(b.q.Pause(bg))
		b.Must(b.q.Resume(bg))
		b.Do("HINCRBY", b.Name+"_metrics:late", "sum", 1) // as when a task has come due
		b.Until("one is archived, one retries, one is parked", func() bool {
			q, err := b.ins.Queue(bg, queueName)
			b.Must(err)
			return q.Size(state.Archived) == 1 && q.Size(state.Retry) == 1 && q.Size(state.Parked) == 1
		})
		if err := b.ins.DeleteQueue(bg, queueName, true); !errors.Is(err, inspect.ErrNotEmpty) {
			t.Errorf("with a worker: %v, expected ErrNotEmpty", err)
		}
	})
	if err := b.ins.DeleteQueue(bg, queueName, false); !errors.Is(err, inspect.ErrNotEmpty) {
		t.Errorf("with tasks: %v, expected ErrNotEmpty", err)
	}
	if len(left()) < 8 {
		t.Errorf("keys %v: expected more to delete", left())
	}
	b.Must(b.ins.DeleteQueue(bg, queueName, true))
	if keys := left(); len(keys) > 0 {
		t.Errorf("left: %v", keys)
	}
	if queues, err := b.ins.Queues(bg); err != nil || len(queues) > 0 {
		t.Errorf("%+v, %v", queues, err)
	}
	if err := b.ins.DeleteQueue(bg, queueName, true); !errors.Is(err, inspect.ErrNotFound) {
		t.Errorf("again: %v, expected ErrNotFound", err)
	}
	_, err := b.q.Delay(welcome, 1, "en")
	b.Must(err)
	if q, err := b.ins.Queue(bg, queueName); err != nil || q.Pending != 1 {
		t.Errorf("%+v, %v: expected that the queue is there again", q, err)
	}
}
