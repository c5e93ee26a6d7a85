package inspect_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// TestQueueInEveryState has a worker bring tasks into every state, and looks at the queue, its lists and each task.
func TestQueueInEveryState(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, err := b.ins.Queue(bg, queueName); !errors.Is(err, inspect.ErrNotFound) {
		t.Errorf("%v, expected ErrNotFound before anything was enqueued", err)
	}
	running, release := make(chan struct{}), make(chan struct{})
	block := delayed.Func(func(ctx context.Context, _ int) error {
		close(running)
		<-release
		return nil
	}, delayed.Name("block"))
	answer := delayed.Func(func() int { return 42 }, delayed.Name("answer"))
	delay := func(id string, fn any, opts []delayed.Option, args ...any) {
		t.Helper()
		_, err := b.q.With(append(opts, delayed.TaskID(id))...).Delay(fn, args...)
		b.Must(err)
	}
	delay("done", answer, []delayed.Option{delayed.KeepResult(time.Hour)})
	delay("fails", fails, nil, 1)
	delay("archived", fails, []delayed.Option{delayed.MaxRetry(0)}, 2)
	delay("parked", welcome, nil, 3, "en")
	delay("scheduled", welcome, []delayed.Option{delayed.In(time.Hour)}, 4, "en")
	b.work(block, answer, fails)
	t.Cleanup(func() { close(release) }) // before the worker stops
	for _, s := range []state.Task{state.Retry, state.Archived, state.Parked, state.Completed} {
		b.Until("one is "+s.String(), func() bool {
			q, err := b.ins.Queue(bg, queueName)
			b.Must(err)
			return q.Size(s) == 1
		})
	}
	delay("runs", block, nil, 5)
	<-running
	b.Must(b.q.Pause(bg))
	delay("waits", welcome, nil, 6, "en")
	want := map[string]state.Task{
		"done": state.Completed, "fails": state.Retry, "archived": state.Archived, "parked": state.Parked,
		"scheduled": state.Scheduled, "runs": state.Active, "waits": state.Pending,
	}
	var queues []inspect.Queue
	var err error
	b.Until("the pending task is a millisecond old", func() bool {
		queues, err = b.ins.Queues(bg)
		b.Must(err)
		return len(queues) != 1 || queues[0].Latency > 0
	})
	if len(queues) != 1 || queues[0].Name != queueName {
		t.Fatalf("found %+v, expected one queue", queues)
	}
	q := queues[0]
	if q.Workers != 1 || q.Paused.IsZero() || q.Latency <= 0 || q.Latency > time.Minute || q.Legacy {
		t.Errorf("%+v: expected one worker, a pause, and a young pending task", q)
	}
	if c := q.Today; c.Processed != 3 || c.Failed != 2 || c.Retried != 1 || c.Archived != 1 || c.Parked != 1 {
		t.Errorf("counted %+v", c)
	}
	days, err := b.ins.History(bg, queueName, 2)
	b.Must(err)
	if len(days) != 2 || days[0].Counts != q.Today || days[1].Processed != 0 {
		t.Errorf("history %+v", days)
	}
	for id, s := range want {
		if q.Size(s) != 1 {
			t.Errorf("%d %v tasks, expected 1", q.Size(s), s)
		}
		list := b.tasks(inspect.Query{State: s})
		if len(list) != 1 || list[0].ID != id || list[0].State != s {
			t.Errorf("%v: listed %+v, expected %s", s, list, id)
			continue
		}
		one, err := b.ins.Task(bg, queueName, id)
		b.Must(err)
		if one.State != s || one.Call != list[0].Call || one.Function != list[0].Function || one.Queue != queueName {
			t.Errorf("%s: found %+v, listed %+v", id, one, list[0])
		}
		found, err := b.ins.Find(bg, id)
		b.Must(err)
		if len(found) != 1 || found[0].ID != id {
			t.Errorf("%s: found %+v", id, found)
		}
	}
	checkKnown(t, b)
	if n, err := b.ins.Memory(bg, queueName); err != nil || n < 500 || n > 1<<20 {
		t.Errorf("%d bytes of memory, %v", n, err)
	}
}

// checkKnown looks at what is known of single tasks.
func checkKnown(t *testing.T, b *bench) {
	t.Helper()
	get := func(id string) inspect.Task {
		t.Helper()
		task, err := b.ins.Task(bg, queueName, id)
		b.Must(err)
		return task
	}
	retry := get("fails")
	if retry.Attempt != 2 || retry.Error != `mailbox full:\x1b[31m red\u202e` || retry.Reason != "failed" ||
		time.Until(retry.Due) < 50*time.Minute || retry.Worker == "" || retry.FirstFailed.IsZero() {
		t.Errorf("%+v", retry)
	}
	if done := get("done"); done.Result != int64(42) || done.Began.IsZero() || done.At.IsZero() || done.Due.IsZero() {
		t.Errorf("%+v", done)
	}
	if done := get("done"); done.Call != "answer(…)" || done.Problem == "" || done.Python {
		t.Errorf("only the result of %+v was kept: expected a call that says so", done)
	}
	if archived := get("archived"); *archived.Options.MaxRetry != 0 || archived.Attempt != 1 {
		t.Errorf("%+v", archived)
	}
	if parked := get("parked"); parked.Reason != "unknown function" || parked.Function != path("welcome") {
		t.Errorf("%+v", parked)
	}
	runs := get("runs")
	if runs.Worker == "" || runs.Claimed.IsZero() || runs.Call != "block(5)" {
		t.Errorf("%+v", runs)
	}
	workers, err := b.ins.Workers(bg)
	b.Must(err)
	if len(workers) != 1 || workers[0].ID != runs.Worker || workers[0].PID == 0 || workers[0].Host == "" ||
		!workers[0].Alive() || len(workers[0].Queues) != 1 || workers[0].Queues[0].Claims != 1 {
		t.Errorf("%+v", workers)
	}
	functions, err := b.ins.Functions(bg)
	b.Must(err)
	var signatures []string
	for _, f := range functions {
		signatures = append(signatures, f.Signature())
		if len(f.Workers) != 1 || f.Workers[0] != runs.Worker {
			t.Errorf("%+v: expected the worker", f)
		}
	}
	if got := strings.Join(signatures, "; "); got != "answer() int; block(int); inspect_test.fails(int)" {
		t.Errorf("functions %s", got)
	}
}

// A queue's latency counts from the moment at which its oldest task could start.
func TestLatencyCountsFromTheDueTime(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	now := redistest.Time(t, b.Conn)
	m := wire.Message{Kind: wire.GoExtended, Path: "a.b", Meta: wire.Meta{ID: "x", EnqueuedAt: now - 3_600_000}}
	for _, c := range []struct {
		due         int64
		least, most time.Duration
	}{{now - 5000, 5 * time.Second, time.Minute}, {0, time.Hour, time.Hour + time.Minute}} {
		m.Meta.Extra = &wire.Extra{Due: c.due}
		b.Do("DEL", b.Name, b.Name+"_noti")
		b.Do("RPUSH", b.Name, m.Append(nil))
		b.Do("RPUSH", b.Name+"_noti", 1)
		q, err := b.ins.Queue(bg, queueName)
		b.Must(err)
		if q.Latency < c.least || q.Latency > c.most {
			t.Errorf("due at %d: a latency of %v, expected %v to %v", c.due, q.Latency, c.least, c.most)
		}
	}
}
