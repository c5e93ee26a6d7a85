package delayed_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestWrongTypedKeyIsNamed: errors about a key of another program name the key.
func TestWrongTypedKeyIsNamed(t *testing.T) {
	b := newBench(t)
	q := func() (*delayed.Queue, string) {
		name := redistest.Name(t)
		return delayed.NewQueue(name, b.rdb), name
	}
	ctx := t.Context()
	for suffix, do := range map[string]func(q *delayed.Queue) error{
		"":           func(q *delayed.Queue) error { _, err := q.Len(ctx); return err },
		"_noti":      func(q *delayed.Queue) error { _, err := q.Delay(lenTask); return err },
		"_tasks":     func(q *delayed.Queue) error { _, err := q.With(delayed.In(1e9)).Delay(lenTask); return err },
		"_scheduled": func(q *delayed.Queue) error { _, err := q.Ref("x").State(ctx); return err },
		"_control":   func(q *delayed.Queue) error { return q.Pause(ctx) },
		"_parked":    func(q *delayed.Queue) error { _, _, err := q.Parked(ctx, 0, 1); return err },
		"_periodic":  func(q *delayed.Queue) error { _, err := q.Periodic().List(ctx); return err },
		"_groups": func(q *delayed.Queue) error {
			_, err := q.With(delayed.Group("g")).Delay(listTask, 1)
			return err
		},
	} {
		q, name := q()
		if _, err := b.Conn.Do("PFADD", name+suffix, "x"); err != nil { // a string, which no code of this package makes
			t.Fatal(err)
		}
		err := do(q)
		want := fmt.Sprintf("key %q is a string, expected a %s: another program writes there; rename or delete its key",
			name+suffix, redisstore.TypeOfKey(name+suffix))
		if err == nil || !strings.HasPrefix(err.Error(), "delayed: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: found %v, expected %q", suffix, err, want)
		}
		if _, err := b.Conn.Do("DEL", name+suffix); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWrongTypeWithoutTYPE: for a user who may not call TYPE, the error names the possible keys.
func TestWrongTypeWithoutTYPE(t *testing.T) {
	server := redistest.Start(t)
	name := redistest.Name(t)
	server.Do(t, "ACL", "SETUSER", "u", "on", ">p", "~*", "+@all", "-type")
	server.Do(t, "SET", name, "x")
	rdb, err := delayed.Dial(strings.Replace(server.URL(), "redis://", "redis://u:p@", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	if _, err := delayed.NewQueue(name, rdb).Len(t.Context()); err == nil ||
		!strings.Contains(err.Error(), fmt.Sprintf("one of the keys [%q]", name)) {
		t.Errorf("found %v", err)
	}
}

func lenTask() {}

func listTask(...int) {}

// TestOtherQueuesRunBesideAWrongType: tasks run, and due ones too, while a key of another queue of the worker has
// another type. That queue's tasks run once the key is gone.
func TestOtherQueuesRunBesideAWrongType(t *testing.T) {
	for _, key := range []string{"", "_noti", "_scheduled", "_control"} {
		for _, weighted := range []bool{false, true} {
			t.Run(fmt.Sprintf("key %q, weighted %v", key, weighted), func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t)
				b := newBenchOn(t, server)
				names := []string{b.Name + "bad", b.Name, b.Name + "last"}
				b.Do("SET", names[0]+key, "of another program")
				ran := make(chan string, 100)
				f := b.fn("f", func(name string) { ran <- name })
				for _, name := range names[1:] {
					q := delayed.NewQueue(name, b.rdb)
					for range 3 {
						b.delayWith(q, f, name)
						b.delayWith(q.With(delayed.In(10*time.Millisecond)), f, name)
					}
				}
				cfg := b.config()
				cfg.Queues = delayed.Strict(names)
				if weighted {
					cfg.Queues = delayed.Weighted{names[0]: 5, names[1]: 2, names[2]: 1}
				}
				start := time.Now()
				w := b.work(cfg, f)
				for range 12 {
					await(b, "a task of another queue", ran)
				}
				for range 30 { // while Redis goes on refusing claims from the other one
					b.delayWith(b.q.With(delayed.In(20*time.Millisecond)), f, b.Name)
					await(b, "a task of another queue", ran)
				}
				most := 1 + int(time.Since(start)/loop.ComplaintInterval)
				if n := strings.Count(b.log.String(), "cannot claim tasks"); n > most {
					t.Errorf("the log complains %d times of the queue:\n%s", n, b.log)
				}
				b.Do("DEL", names[0]+key)
				b.delayWith(delayed.NewQueue(names[0], b.rdb), f, "bad")
				if name := await(b, "the task of the bad queue", ran); name != "bad" {
					t.Errorf("found one of %q", name)
				}
				w.mustStop()
			})
		}
	}
}

// TestOtherQueuesRunBesideARefusedRegistration: where Redis refuses to register a worker, because the set of workers is
// of another type, the worker serves its other queues, and that one too as soon as it can. At its stop it unregisters
// from the others.
func TestOtherQueuesRunBesideARefusedRegistration(t *testing.T) {
	server := redistest.Start(t)
	b := newBenchOn(t, server)
	bad, key := b.Name+"bad", b.Name+"bad_workers"
	b.Do("SET", key, "of another program")
	ran := make(chan string, 1)
	f := b.fn("f", func(name string) { ran <- name })
	cfg := b.config()
	cfg.Queues = delayed.Strict{bad, b.Name}
	w, err := delayed.NewWorker(b.rdb, cfg)
	b.Must(err)
	b.Must(w.Register(f))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- w.Run(ctx) }()
	waits := func() bool {
		info, err := redis.String(b.Conn.Do("INFO", "clients"))
		return err == nil && strings.Contains(info, "blocked_clients:1\r\n")
	}
	for range 3 {
		b.Until("the worker waits for tasks", waits)
		b.delayWith(b.q, f, b.Name)
		await(b, "a task of the other queue", ran)
	}
	if w.Status().Connected {
		t.Error("the worker says that it is connected to all queues")
	}
	b.Do("DEL", key)
	b.Until("the worker is connected", func() bool { return w.Status().Connected })
	b.delayWith(delayed.NewQueue(bad, b.rdb), f, bad)
	await(b, "a task of the queue that was refused", ran)
	b.Do("DEL", key)
	b.Do("SET", key, "of another program")
	cancel()
	if err := await(b, "the end of Run", result); err == nil || !strings.Contains(err.Error(), key) {
		t.Errorf("Run returned %v, expected that it cannot unregister because of %s", err, key)
	}
	if n := b.Size("_workers"); n != 0 {
		t.Errorf("the worker is still registered on the other queue")
	}
}
