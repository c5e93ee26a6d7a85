package delayed_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// replicated starts a master with the given arguments, and a replica that is up to date.
func replicated(t testing.TB, args ...string) (master, replica *redistest.Server) {
	t.Helper()
	master = redistest.Start(t, append(args, "--repl-diskless-sync-delay", "0")...)
	host, port, _ := strings.Cut(master.Addr(), ":")
	replica = redistest.Start(t, "--replicaof", host, port)
	for deadline := time.Now().Add(20 * time.Second); ; <-time.After(2 * time.Millisecond) {
		info, err := redis.String(master.Do(t, "INFO", "replication"), nil)
		if err == nil && strings.Contains(info, "state=online") {
			return master, replica
		}
		if time.Now().After(deadline) {
			t.Fatalf("the replica does not follow: %v\n%s", err, info)
		}
	}
}

func TestWaitForReplicas(t *testing.T) {
	t.Parallel()
	background := context.Background() //nolint:usetesting // cannot end: such calls go another way
	master, replica := replicated(t)
	rdb, err := delayed.Dial(master.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	q, err := delayed.OpenQueue(rdb, delayed.QueueConfig{Name: "mail", WaitReplicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	call := func() *delayed.Task { return delayed.NewGoTask("example.com/app/mail.Welcome") }

	for name, enqueue := range map[string]func(ctx context.Context) error{
		"Enqueue": func(ctx context.Context) error { _, err := q.Enqueue(ctx, call()); return err },
		"DelayMany": func(ctx context.Context) error {
			_, err := q.DelayMany(ctx, call(), call())
			return err
		},
		"In": func(ctx context.Context) error {
			_, err := q.With(delayed.In(time.Hour)).Enqueue(ctx, call())
			return err
		},
		"TaskID": func(ctx context.Context) error {
			_, err := q.With(delayed.TaskID("welcome")).Enqueue(ctx, call())
			return err
		},
		"Group": func(ctx context.Context) error {
			_, err := q.With(delayed.Group("g")).Enqueue(ctx,
				delayed.NewGoTask("example.com/app/search.Index", []int{1}))
			return err
		},
	} {
		for _, ctx := range []context.Context{background, t.Context()} {
			master.FlushScripts(t)
			before := master.CommandStats(t)
			if err := enqueue(ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			// One WAIT goes with EVALSHA, which finds no script, and one with EVAL.
			if n := master.CommandStats(t).Since(before)["wait"]; n != 2 {
				t.Errorf("%s: Redis was asked to wait %d times, expected 2", name, n)
			}
			if n, err := redis.Int(replica.Do(t, "EXISTS", "mail", "mail_tasks", "mail_groups"), nil); n == 0 ||
				err != nil {
				t.Errorf("%s: the replica has nothing, %v", name, err)
			}
			master.Do(t, "FLUSHALL")
		}
	}

	// Tasks that are sent together wait together.
	const callers, each = 32, 20
	before := master.CommandStats(t)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				if _, err := q.Enqueue(background, call()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := master.CommandStats(t).Since(before)["wait"]; n < 1 || n >= callers*each {
		t.Errorf("Redis was asked to wait %d times for %d tasks of %d callers", n, callers*each, callers)
	}

	replica.Pause(t)
	defer replica.Resume(t)
	pending := redisInt(t, master, "LLEN", "mail")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err = q.Enqueue(ctx, call())
	if !errors.Is(err, delayed.ErrUnknown) || !strings.Contains(err.Error(), "0 of 1 replicas") {
		t.Errorf("with a frozen replica: expected ErrUnknown and 0 of 1 replicas, found %v", err)
	}
	if n := redisInt(t, master, "LLEN", "mail"); n != pending+1 {
		t.Errorf("%d tasks are pending, expected %d: it was enqueued", n, pending+1)
	}
	// A caller that does not ask for replicas waits neither for them nor for those who do.
	if _, err := delayed.NewQueue("mail", rdb).Enqueue(t.Context(), call()); err != nil {
		t.Errorf("without WaitReplicas: %v", err)
	}
}

// TestWaitRefused: if the server refuses WAIT, the producer does not report the task as safe.
func TestWaitRefused(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Do(t, "ACL", "SETUSER", "default", "-wait")
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	q, err := delayed.OpenQueue(rdb, delayed.QueueConfig{Name: "mail", WaitReplicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = q.Enqueue(t.Context(), delayed.NewGoTask("example.com/app/mail.Welcome"))
	if !errors.Is(err, delayed.ErrUnknown) || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("expected ErrUnknown and NOPERM, found %v", err)
	}
	if _, err := delayed.OpenQueue(rdb, delayed.QueueConfig{Name: "mail", WaitReplicas: -1}); err == nil ||
		!strings.Contains(err.Error(), "WaitReplicas is -1") {
		t.Errorf("WaitReplicas: -1: %v", err)
	}
}

func redisInt(t *testing.T, s *redistest.Server, cmd string, args ...any) int {
	t.Helper()
	n, err := redis.Int(s.Do(t, cmd, args...), nil)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
