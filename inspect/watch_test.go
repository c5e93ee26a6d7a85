package inspect_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/redistest"
)

// watching collects events until the test ends.
func (b *bench) watching(queues ...string) <-chan inspect.Event {
	b.T.Helper()
	ctx, cancel := context.WithCancel(bg)
	events, done := make(chan inspect.Event, 1000), make(chan struct{})
	go func() {
		defer close(done)
		for e, err := range b.ins.Watch(ctx, queues...) {
			if err != nil {
				b.T.Error(err)
				continue
			}
			select {
			case events <- e:
			case <-ctx.Done():
			}
		}
	}()
	b.T.Cleanup(func() {
		cancel()
		redistest.Await(b.Bench, "the end of Watch", done)
	})
	return events
}

// asked enqueues tasks until the workers tell of them.
func (b *bench) asked(events <-chan inspect.Event) {
	b.T.Helper()
	b.Until("the worker tells of a task", func() bool {
		_, err := b.q.Delay(welcome, 1, "en")
		b.Must(err)
		<-time.After(10 * time.Millisecond) // between two tasks
		return len(events) > 0
	})
}

// next waits for the next event of a kind.
func (b *bench) next(events <-chan inspect.Event, kind event.Kind) inspect.Event {
	b.T.Helper()
	for {
		if e := redistest.Await(b.Bench, kind.String(), events); e.Kind == kind {
			return e
		}
	}
}

// Who watches hears what workers do, and workers publish nothing while nobody does.
func TestWatch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	raw := b.Server.Dial(t)
	b.Must(raw.Send("SUBSCRIBE", b.Name+"_events"))
	b.Must(raw.Flush())
	if _, err := raw.Receive(); err != nil {
		t.Fatal(err)
	}
	w := b.work(welcome, fails)
	ref, err := b.q.With(delayed.TaskID("before"), delayed.KeepResult(time.Hour)).Delay(welcome, 1, "en")
	b.Must(err)
	b.Must(ref.Wait(bg))
	events := b.watching(queueName)
	b.asked(events)
	begin := time.Now()
	_, err = b.q.With(delayed.TaskID("fails")).Delay(fails, 1)
	b.Must(err)
	for {
		e := b.next(events, event.TaskStarted)
		if e.ID == "before" {
			t.Error("it was told of what was before")
		}
		if e.ID == "fails" {
			break
		}
	}
	failed := b.next(events, event.TaskFailed)
	if failed.ID != "fails" || failed.Function != path("fails") || failed.Attempt != 1 || failed.Queue != queueName ||
		failed.Worker != w.ID() || failed.Error != errMailbox.Error() || failed.At.Sub(begin).Abs() > time.Minute {
		t.Errorf("%+v", failed)
	}
	if retried := b.next(events, event.TaskRetried); retried.ID != "fails" || retried.Wait != time.Hour {
		t.Errorf("%+v, expected that it waits for an hour", retried)
	}
	b.Must(b.q.Pause(bg))
	b.next(events, event.QueuePaused)
	reply, err := redis.Strings(raw.Receive())
	b.Must(err)
	text := reply[2]
	if strings.Contains(text, `"id":"before"`) || !strings.Contains(text, `"version":1`) {
		t.Errorf("first published: %s", text)
	}
}

// What Config.Redact hides is not in events either.
func TestWatchRedacts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ins, err := inspect.New(b.rdb, inspect.Config{Redact: func(c *inspect.Contents) {
		c.Error = strings.ReplaceAll(c.Error, errMailbox.Error(), "hidden")
		c.Function = strings.ReplaceAll(c.Function, path("welcome"), "hidden too")
	}})
	b.Must(err)
	b.ins = ins
	b.work(welcome, fails)
	events := b.watching(queueName)
	b.asked(events)
	_, err = b.q.Delay(fails, 1)
	b.Must(err)
	if e := b.next(events, event.TaskStarted); e.Function != "hidden too" {
		t.Errorf("the function of a task is %q", e.Function)
	}
	if e := b.next(events, event.TaskFailed); e.Error != "hidden" {
		t.Errorf("the error of a task is %q", e.Error)
	}
}

// subscribed waits until somebody listens to the events of the queue.
func (b *bench) subscribed() {
	b.T.Helper()
	b.Until("somebody listens to events", func() bool {
		reply, err := redis.Values(b.Conn.Do("PUBSUB", "NUMSUB", b.Name+"_events"))
		b.Must(err)
		n, err := redis.Int(reply[1], nil)
		b.Must(err)
		return n > 0
	})
}

// TestWatchCountsWhatIsLost publishes events as workers do, with gaps between them.
func TestWatchCountsWhatIsLost(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	events := b.watching(queueName)
	b.subscribed()
	for _, told := range []struct {
		worker                string
		missed, since, before int
		want                  int
	}{
		{"one", 0, 1, 50, 0},  // what was before nobody knows
		{"one", 0, 1, 52, 0},  // two events each
		{"two", 0, 1, 0, 0},   // another worker
		{"one", 0, 1, 59, 5},  // five were lost
		{"one", 7, 1, 68, 7},  // seven were too many
		{"one", 7, 1, 80, 10}, // likewise, and three were lost
		{"one", 0, 2, 0, 0},   // nobody has watched meanwhile
		{"one", 3, 2, 5, 3},
		{"two", 0, 1, 1, 0}, // nonsense
		{"two", 4, 0, 0, 4}, // an earlier version
	} {
		e := `{"kind":"worker idle","at":5},{"kind":"worker idle","at":6}`
		b.Do("PUBLISH", b.Name+"_events", fmt.Sprintf(
			`{"version":1,"worker":%q,"missed":%d,"since":%d,"before":%d,"events":[%s]}`,
			told.worker, told.missed, told.since, told.before, e,
		))
		first, second := b.next(events, event.WorkerIdle), b.next(events, event.WorkerIdle)
		if first.Missed != told.want || second.Missed != 0 || second.Worker != told.worker {
			t.Errorf("%+v: missed %d and %d", told, first.Missed, second.Missed)
		}
	}
}

// A worker that comes later is asked as well.
func TestWatchBeforeWorkers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	events := b.watching(queueName)
	b.subscribed()
	b.work(welcome)
	b.asked(events)
}

// A worker tells of no more events than a watcher can read, and how many there were.
func TestWatchOfManyEvents(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work(welcome)
	events := b.watching(queueName)
	b.asked(events)
	const n = 20_000
	calls := make([]*delayed.Task, n)
	for i := range calls {
		calls[i] = delayed.Call(welcome, i, "en")
	}
	_, err := b.q.DelayMany(bg, calls...)
	b.Must(err)
	missed := 0
	for missed == 0 {
		missed += redistest.Await(b.Bench, "an event after others that were missed", events).Missed
	}
	b.Idle()
}

// Who watches all queues also hears of those that nobody has used yet.
func TestWatchFindsQueues(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	events := b.watching()
	b.work(welcome)
	b.asked(events)
}

func TestWatchEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for e, err := range b.ins.Watch(bg, "a queue") {
		if err == nil || !strings.Contains(err.Error(), "a queue") {
			t.Errorf("%+v, %v, expected an error about the name", e, err)
		}
	}
	rdb, err := delayed.Dial(b.Server.URL())
	b.Must(err)
	ins, err := inspect.New(rdb, inspect.Config{})
	b.Must(err)
	done := make(chan error, 1)
	go func() {
		var last error
		for _, err := range ins.Watch(bg, queueName) {
			last = err
		}
		done <- last
	}()
	b.Must(rdb.Ping(bg))
	b.Must(rdb.Close())
	if err := redistest.Await(b.Bench, "the end", done); err == nil {
		t.Error("no error, although the handle is closed")
	}
}
