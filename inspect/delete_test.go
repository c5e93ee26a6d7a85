package inspect_test

import (
	"errors"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

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
