//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/hibiken/asynq"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/itest/asynq/mail"
	"github.com/godelayed/delayed/state"
)

// limit is the timeout for events that should come soon.
const limit = 60 * time.Second

// await waits until done returns nil.
func await(t *testing.T, what string, done func() error) {
	t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		err := done()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come within %v: %v", what, limit, err)
		}
	}
}

// outbox keeps what was sent.
type outbox struct {
	mu    sync.Mutex
	mails bytes.Buffer
}

func (o *outbox) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mails.Write(b)
}

// runs returns how often each mail was sent.
func (o *outbox) runs() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	runs := map[string]int{}
	for line := range strings.Lines(o.mails.String()) {
		runs[strings.TrimSpace(line)]++
	}
	return runs
}

// mailTask is the task as the application makes it for asynq.
func mailTask(user int, options ...asynq.Option) *asynq.Task {
	options = append(options, asynq.Queue("mail"))
	return asynq.NewTask("mail:welcome", fmt.Appendf(nil, `{"UserID": %d, "Lang": "en"}`, user), options...)
}

func TestMigrate(t *testing.T) {
	addr := redistest.Start(t).Addr()
	url, opt := "redis://"+addr, asynq.RedisClientOpt{Addr: addr}
	box := &outbox{}
	mail.Out = box
	client, inspector := asynq.NewClient(opt), asynq.NewInspector(opt)
	defer client.Close()
	defer inspector.Close()
	rdb, err := delayed.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	queue := delayed.NewQueue("mail", rdb)

	user := 0
	enqueue := func(n int, options ...asynq.Option) (last *asynq.TaskInfo) {
		t.Helper()
		for range n {
			user++
			var err error
			if last, err = client.Enqueue(mailTask(user, options...)); err != nil {
				t.Fatal(err)
			}
		}
		return last
	}
	enqueue(3, asynq.MaxRetry(5))
	failOnce(t, opt, inspector, 3)
	enqueue(20)
	enqueue(5, asynq.ProcessIn(2*time.Second))
	later, err := client.Enqueue(mailTask(1000, asynq.ProcessIn(time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	// One was forwarded before, and asynq did not learn of it.
	f := &forwarder{inspector, queue}
	twice := enqueue(1)
	if err := f.forward(t.Context(), twice); err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, url, "mail", false) }()
	await(t, "a mail that asynq's server has forwarded", func() error {
		if len(box.runs()) < 2 { // one was forwarded by this test
			return errors.New("none was sent")
		}
		return nil
	})
	for range 10 {
		user++
		if _, err := queue.Delay(mail.Welcome, user, "en"); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(t.Context(), url, "mail", true); err != nil {
		t.Fatal(err)
	}
	await(t, "the last mail", func() error {
		if n := len(box.runs()); n != user {
			return fmt.Errorf("expected mails to %d users, found %d", user, n)
		}
		return nil
	})
	info, err := queue.Ref(later.ID).Info(t.Context())
	if gap := info.Due.Sub(later.NextProcessAt).Abs(); err != nil || info.State != state.Scheduled ||
		gap > time.Second {
		t.Errorf("the task of asynq that is due at %v: found %+v, %v", later.NextProcessAt, info, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for line, n := range box.runs() {
		if n != 1 {
			t.Errorf("%q was sent %d times", line, n)
		}
	}
	checkEmpty(t, addr, inspector)
}

// failOnce makes n tasks fail at a server from before the migration, so that they wait for another try.
func failOnce(t *testing.T, opt asynq.RedisClientOpt, inspector *asynq.Inspector, n int) {
	t.Helper()
	old := asynq.NewServer(opt, asynq.Config{
		Queues: map[string]int{"mail": 1}, TaskCheckInterval: 10 * time.Millisecond, LogLevel: asynq.FatalLevel,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return time.Second },
	})
	failed := asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		return errors.New("the mail server is away")
	})
	if err := old.Start(failed); err != nil {
		t.Fatal(err)
	}
	defer old.Shutdown()
	await(t, "a failure of each task", func() error {
		retrying, err := inspector.ListRetryTasks("mail")
		if err == nil && len(retrying) != n {
			err = fmt.Errorf("%d tasks of %d wait", len(retrying), n)
		}
		return err
	})
}

// checkEmpty checks that asynq keeps nothing of the queue except its counters.
func checkEmpty(t *testing.T, addr string, inspector *asynq.Inspector) {
	t.Helper()
	if queues, err := inspector.Queues(); err != nil || len(queues) > 0 {
		t.Errorf("expected no queue of asynq, found %q, %v", queues, err)
	}
	conn, err := redis.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	keys, err := redis.Strings(conn.Do("KEYS", "asynq:{mail}:*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if rest := strings.TrimPrefix(key, "asynq:{mail}:"); !strings.HasPrefix(rest, "processed") &&
			!strings.HasPrefix(rest, "failed") {
			t.Errorf("asynq still has %s", key)
		}
	}
}

// A drain stops at what it cannot move, and says what that is.
func TestDrainRefuses(t *testing.T) {
	addr := redistest.Start(t).Addr()
	opt := asynq.RedisClientOpt{Addr: addr}
	client, inspector := asynq.NewClient(opt), asynq.NewInspector(opt)
	defer client.Close()
	defer inspector.Close()
	drain := func() error { return run(t.Context(), "redis://"+addr, "mail", true) }
	if err := drain(); err != nil {
		t.Errorf("a queue that does not exist: %v", err)
	}
	for _, task := range []*asynq.Task{
		asynq.NewTask("mail:goodbye", nil, asynq.Queue("mail"), asynq.TaskID("x")),
		asynq.NewTask("mail:welcome", []byte("{"), asynq.Queue("mail"), asynq.TaskID("x")),
	} {
		if _, err := client.Enqueue(task); err != nil {
			t.Fatal(err)
		}
		if err := drain(); err == nil || !strings.Contains(err.Error(), "task x") {
			t.Errorf("%s %q: %v", task.Type(), task.Payload(), err)
		}
		if err := inspector.ArchiveTask("mail", "x"); err != nil {
			t.Fatal(err)
		}
		if err := drain(); err == nil || !strings.Contains(err.Error(), "1 archived") {
			t.Errorf("archived: %v", err)
		}
		if err := inspector.DeleteTask("mail", "x"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Enqueue(mailTask(1)); err != nil {
		t.Fatal(err)
	}
	if err := drain(); err != nil {
		t.Error(err)
	}
	checkEmpty(t, addr, inspector)
	rdb, err := delayed.Dial("redis://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	if n, err := delayed.NewQueue("mail", rdb).Len(t.Context()); n != 1 || err != nil {
		t.Errorf("expected the task in delayed, found %d, %v", n, err)
	}
}
