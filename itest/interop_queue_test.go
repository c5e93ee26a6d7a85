//go:build unix

package itest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// handle returns a handle on the server that is closed at the end of the test.
func handle(t *testing.T, server *redistest.Server) *delayed.Store {
	t.Helper()
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rdb.Close(); err != nil {
			t.Errorf("closing the handle: %v", err)
		}
	})
	return rdb
}

// legacyQueue opens a queue in the mode for sharing it with Python.
func legacyQueue(t *testing.T, server *redistest.Server, name string) *delayed.Queue {
	t.Helper()
	q, err := delayed.OpenQueue(name, handle(t, server).WithLegacy(), delayed.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// startWorkerHere runs a worker until the end of the test, or until stop is called. If the test fails, it shows the
// worker's log.
func startWorkerHere(t *testing.T, rdb *delayed.Store, cfg delayed.WorkerConfig, fns ...any) (stop func()) {
	t.Helper()
	out := new(redistest.Log)
	log := logrus.New()
	log.SetOutput(out)
	cfg.Logger = log
	w, err := delayed.NewWorker(rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Register(fns...); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Worker.Run: %v", err)
		}
		if t.Failed() {
			t.Logf("log of the worker:\n%s", out)
		}
	})
	t.Cleanup(stop)
	return stop
}

// count returns one of the counters of a queue, summed over all days.
func count(t *testing.T, server *redistest.Server, queue, counter string) int {
	t.Helper()
	total := 0
	for _, day := range []time.Time{time.Now(), time.Now().Add(-24 * time.Hour)} {
		n, err := redis.Int(server.Do(t, "HGET", queue+"_stats:"+day.UTC().Format("20060102"), counter), nil)
		if err != nil && !errors.Is(err, redis.ErrNil) {
			t.Fatal(err)
		}
		total += n
	}
	return total
}

// onlyPending returns the only pending message of a queue.
func onlyPending(t *testing.T, server *redistest.Server, queue string) string {
	t.Helper()
	messages, err := redis.Strings(server.Do(t, "LRANGE", queue, 0, -1), nil)
	if err != nil || len(messages) != 1 {
		t.Fatalf("queue %s: expected one message, found %q, %v", queue, messages, err)
	}
	return messages[0]
}

// archivedIn returns the messages of the tasks in one of a queue's sets.
func archivedIn(t *testing.T, server *redistest.Server, queue string) []string {
	t.Helper()
	return filedIn(t, server, queue, "_archived")
}

func filedIn(t *testing.T, server *redistest.Server, queue, set string) []string {
	t.Helper()
	ids, err := redis.Strings(server.Do(t, "ZRANGE", queue+set, 0, -1), nil)
	if err != nil {
		t.Fatal(err)
	}
	var messages []string
	for _, id := range ids {
		message, err := redis.String(server.Do(t, "HGET", queue+"_tasks", id), nil)
		if err != nil {
			t.Fatalf("task %s is in %s but has no message: %v", id, queue+set, err)
		}
		messages = append(messages, message)
	}
	return messages
}
