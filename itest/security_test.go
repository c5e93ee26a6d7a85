//go:build unix

package itest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/answer"
	"github.com/godelayed/delayed/semaphore"
)

// TestUsersOfSecurityPage creates the users that SECURITY.md proposes and uses all features of a producer, a worker and
// its sweeper: Redis must refuse none of it, and must refuse what the page promises.
func TestUsersOfSecurityPage(t *testing.T) {
	together(t)
	for name, start := range map[string]func(*testing.T) *site{
		"Single": single, "Cluster": cluster,
		"Sentinel": withSentinel,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testUsers(t, start(t))
		})
	}
}

func testUsers(t *testing.T, s *site) {
	t.Helper()
	s.tried = map[string]bool{}
	queue := s.queue
	producer := s.dialAs(t, "producer")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := producer.Ping(ctx); err != nil {
		t.Fatal(err)
	}
	var done, failed, gathered atomic.Int64
	gathers := delayed.Func(func(ns ...int) { gathered.Add(int64(len(ns))) }, delayed.Name("acl.gathers"))
	works := delayed.Func(func(int) { done.Add(1) }, delayed.Name("acl.works"))
	fails := delayed.Func(func() error { failed.Add(1); return errors.New("no luck") }, delayed.Name("acl.fails"),
		delayed.MaxRetry(1))
	ticked := make(chan struct{}, 1000)
	periodic := delayed.Func(func() { ticked <- struct{}{} }, delayed.Name("acl.periodic"))
	q := delayed.NewQueue(queue, producer)
	enqueue := func(name string, _ any, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("producer, %s: %v", name, err)
		}
	}
	s.move(t, func() {
		ref, err := q.Delay(works, 1)
		enqueue("Delay", ref, err)
	})
	admin := s.at.Dial(t)
	refs, err := q.DelayMany(ctx, delayed.Call(works, 2), delayed.Call(works, 3))
	enqueue("DelayMany", refs, err)
	ref, err := q.With(delayed.In(50*time.Millisecond), delayed.TaskID("once")).Delay(works, 4)
	enqueue("In", ref, err)
	ref, err = q.With(delayed.Unique(time.Hour)).Delay(works, 5)
	enqueue("Unique", ref, err)
	urgent := q.With(delayed.Front(), delayed.UniqueKey("urgent", time.Hour), delayed.UntilStart(),
		delayed.OnConflict(delayed.ConflictReplace))
	ref, err = urgent.Delay(works, 6)
	enqueue("Front", ref, err)
	ref, err = q.With(delayed.UniqueKey("later", time.Hour), delayed.In(time.Hour)).Delay(works, 7)
	enqueue("UniqueKey", ref, err)
	ref, err = q.With(delayed.UniqueKey("later", time.Hour), delayed.Debounce(time.Millisecond)).Delay(works, 7)
	enqueue("Debounce", ref, err)
	ref, err = q.With(delayed.Group("k"),
		delayed.Gather(delayed.GatherPolicy{Grace: 20 * time.Millisecond})).Delay(gathers, 8)
	enqueue("Group", ref, err)
	ref, err = q.With(delayed.Group("k"), delayed.Gather(delayed.GatherPolicy{MaxSize: 1}),
		delayed.In(time.Millisecond)).Delay(gathers, 9)
	enqueue("Group with In", ref, err)
	ref, err = q.Delay(fails)
	enqueue("Delay of a failing task", ref, err)
	ref, err = q.Enqueue(ctx, delayed.NewGoTask("acl.unknown"))
	enqueue("an unknown function", ref, err)
	ref, err = q.Enqueue(ctx, delayed.NewPyTask("acl:python", nil, nil))
	enqueue("NewPyTask", ref, err)
	n, err := q.Len(ctx)
	enqueue("Len", n, err)
	awaited, err := q.With(delayed.KeepResult(time.Hour)).Delay(works, 6)
	enqueue("KeepResult", awaited, err)
	waited := make(chan error, 1)
	go func() { waited <- awaited.Wait(ctx) }()

	// A worker that died with a task in hand.
	for _, cmd := range [][]any{
		{"SADD", queue + "_workers", "dead"},
		{"HSET", queue + "_processing:dead", "1-1", "\x92\xa9acl.works\xc4\x01\x05"},
		{"HSET", queue + "_claims:dead", "1", "1"},
	} {
		if _, err := admin.Do(cmd[0].(string), cmd[1:]...); err != nil { //nolint:errcheck // a literal above
			t.Fatal(err)
		}
	}

	log := logrus.New()
	log.SetOutput(t.Output())
	w, err := delayed.NewWorker(s.dialAs(t, "worker"), delayed.WorkerConfig{
		Queues: delayed.Strict{queue}, Concurrency: 2, HeartbeatLife: 2 * time.Second,
		SweepInterval: 100 * time.Millisecond,
		Backoff:       func(int) time.Duration { return time.Millisecond }, Logger: log,
		Schedulers: []delayed.SchedulerConfig{{Queue: queue, Owner: "test", Entries: []delayed.Entry{
			{Name: "tick", Spec: "@every 1s", Overlap: delayed.OverlapSkip, Task: delayed.Call(periodic)},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Register(works, fails, gathers, periodic); err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- w.Run(running) }()
	size := func(cmd, suffix string) int {
		n, err := redis.Int(admin.Do(cmd, queue+suffix))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	ended := func() bool {
		return done.Load() == 9 && gathered.Load() == 2 && failed.Load() == 2 && size("ZCARD", "_archived") == 1 &&
			size("ZCARD", "_parked") == 2 && size("SCARD", "_workers") == 1
	}
	for tick := time.NewTicker(10 * time.Millisecond); !ended(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Errorf("%d done, %d failed, %d archived, %d parked, %d workers", done.Load(), failed.Load(),
				size("ZCARD", "_archived"), size("ZCARD", "_parked"), size("SCARD", "_workers"))
			tick.Stop()
			stop()
			<-stopped
			t.Fatalf("refused: %v", s.refusals(t))
		}
	}
	checked, err := delayed.OpenQueue(queue, producer, delayed.QueueConfig{Check: true})
	enqueue("OpenQueue with Check", checked, err)
	_, err = checked.Enqueue(ctx, delayed.NewGoTask("acl.works", "no number"))
	if !errors.Is(err, delayed.ErrArguments) {
		t.Errorf("Check: error %v, expected ErrArguments", err)
	}
	// Registering a function late takes its task out of the parked ones.
	if err := w.Register(delayed.Func(func() { done.Add(1) }, delayed.Name("acl.unknown"))); err != nil {
		t.Fatal(err)
	}
	for tick := time.NewTicker(10 * time.Millisecond); done.Load() < 10 && ctx.Err() == nil; {
		<-tick.C
	}
	enqueue("Wait", awaited, <-waited)
	select {
	case <-ticked:
	case <-ctx.Done():
		t.Errorf("the periodic entry does not tick")
	}
	entries := delayed.NewQueue(queue, s.dialAs(t, "worker")).Periodic()
	for name, err := range map[string]error{
		"Set":    entries.Set(ctx, delayed.Entry{Name: "never", Spec: "@yearly", Task: delayed.Call(periodic)}),
		"Pause":  entries.Pause(ctx, "tick"),
		"Remove": entries.Remove(ctx, "tick"),
	} {
		enqueue(name, nil, err)
	}
	listed, err := entries.List(ctx)
	enqueue("List", listed, err)
	history, err := entries.History(ctx, "never")
	enqueue("History", history, err)

	sem, err := semaphore.New(s.dialAs(t, "worker"), semaphore.Config{Name: queue, Places: 1})
	enqueue("a semaphore", sem, err)
	place, err := sem.TryAcquire(ctx)
	enqueue("TryAcquire", place, err)
	enqueue("Release", nil, place.Release())
	holders, err := sem.Holders(ctx)
	enqueue("Holders", holders, err)

	operated := delayed.NewQueue(queue, s.dialAs(t, "operator"))
	paused, err := operated.Paused(ctx)
	enqueue("Paused", paused, err)
	parked, total, err := operated.Parked(ctx, 0, 10)
	enqueue("Parked", parked, err)
	if total != 1 || len(parked) != 1 || parked[0].Function != "acl:python" {
		t.Errorf("expected that the Python task is listed, found %+v of %d", parked, total)
	}
	watched := delayed.NewQueue(queue, s.dialAs(t, "observer"))
	n, err = watched.Len(ctx)
	enqueue("observer, Len", n, err)
	paused, err = watched.Paused(ctx)
	enqueue("observer, Paused", paused, err)
	_, _, err = watched.Parked(ctx, 0, 10)
	enqueue("observer, Parked", nil, err)
	_, _, err = watched.Archived(ctx, 0, 10)
	enqueue("observer, Archived", nil, err)
	listed, err = watched.Periodic().List(ctx)
	enqueue("observer, List", listed, err)
	history, err = watched.Periodic().History(ctx, "never")
	enqueue("observer, History", history, err)
	seen := watched.Ref(awaited.ID())
	info, err := seen.Info(ctx)
	enqueue("observer, Info", info, err)
	state, err := seen.State(ctx)
	enqueue("observer, State", state, err)
	_, _, _, err = seen.Progress(ctx)
	enqueue("observer, Progress", nil, err)
	enqueue("observer, Wait", nil, seen.Wait(ctx))
	inspectAs(ctx, t, s, awaited.ID(), func() {
		_, err := q.Delay(works, 1)
		enqueue("Delay while somebody watches", nil, err)
	})

	actAs(ctx, t, s, w.ID())

	kept := delayed.NewQueue(queue, s.dialAs(t, "keeper"))
	archived, total, err := kept.Archived(ctx, 0, 10)
	enqueue("Archived", archived, err)
	if total != 1 || len(archived) != 1 {
		t.Fatalf("expected one archived task, found %+v of %d", archived, total)
	}
	info, err = kept.Ref(archived[0].ID).Info(ctx)
	enqueue("keeper, Info", info, err)
	enqueue("RunAgainWith", nil, kept.Ref(archived[0].ID).RunAgainWith(ctx, delayed.Call(fails)))
	for tick := time.NewTicker(10 * time.Millisecond); size("ZCARD", "_archived") == 0 && ctx.Err() == nil; {
		<-tick.C
	}
	n, err = kept.RunArchivedAgain(ctx, func(delayed.TaskInfo) bool { return false })
	enqueue("RunArchivedAgain", n, err)
	n, err = kept.DeleteArchived(ctx, nil)
	enqueue("DeleteArchived", n, err)
	if n != 1 {
		t.Errorf("%d archived tasks were deleted, expected 1", n)
	}
	for i, do := range []func(context.Context) error{ // Restart is the last: then the worker is gone
		operated.Pause, operated.Resume, operated.Worker(w.ID()).Pause, operated.Worker(w.ID()).Resume,
		func(ctx context.Context) error { return operated.SetWeight(ctx, 7) }, operated.Restart,
	} {
		enqueue(fmt.Sprint("order ", i), nil, do(ctx))
	}
	stop()
	if err := <-stopped; err != nil {
		t.Errorf("Run: %v", err)
	}
	if done.Load() < 10 {
		t.Errorf("the parked task did not run")
	}
	if got := s.refusals(t); len(got) > 0 {
		t.Errorf("Redis refused what a producer or a worker needs: %v", got)
	}
	refuseObserver(ctx, t, s)

	overwrite := "return redis.call('SET', KEYS[1], 'x')"
	for user, cmds := range map[string][][]any{
		"producer": {
			{"LRANGE", queue, 0, -1},
			{"HGETALL", queue + "_tasks"},
			{"RPUSH", "other", "x"},
			{"FLUSHALL"},
			{"KEYS", "*"},
			{"ACL", "LIST"},
		},
		"operator": {
			{"LRANGE", queue, 0, -1},
			{"RPUSH", queue, "x"},
			{"GET", queue + "_tasks"},
			{"FLUSHALL"},
			{"PUBLISH", "other_signals", "control"},
		},
		"observer": {
			{"RPUSH", queue, "x"},
			{"DEL", queue},
			{"EVAL", overwrite, 1, queue},
			{"LRANGE", "other", 0, -1},
			{"PUBLISH", queue + "_signals", "control"},
		},
		"worker": {{"RPUSH", "other", "x"}, {"FLUSHALL"}, {"KEYS", "*"}, {"CONFIG", "GET", "*"}, {"ACL", "LIST"}},
	} {
		for _, cmd := range cmds {
			if err := s.try(t, user, cmd); answer.Code(err) != "NOPERM" {
				t.Errorf("%s may %v: %v", user, cmd, err)
			}
		}
	}
	// The commands that the page says are possible.
	for _, cmd := range [][]any{
		{"ZRANGE", queue + "_scheduled", 0, -1},
		{"HGET", queue + "_tasks", "an id"},
		{"EVAL", overwrite, 1, queue},
		{"WAIT", 0, 1},
	} {
		if err := s.try(t, "producer", cmd); err != nil {
			t.Errorf("the producer may not %v, although the page says so: %v", cmd, err)
		}
	}
	if _, err := admin.Do("DEL", queue); err != nil { // what the producer has written there
		t.Fatal(err)
	}
	endAs(ctx, t, s)
}

// aclRules reads the ACL commands of SECURITY.md by the heading of their section; a command goes on in the indented
// lines that follow it.
func aclRules(t *testing.T) map[string][][]string {
	t.Helper()
	page, err := os.ReadFile("../docs/SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string][][]string{}
	section, inside, n := "", false, 0
	for line := range strings.Lines(string(page)) {
		switch words := strings.Fields(line); {
		case strings.HasPrefix(line, "#"):
			section = strings.TrimSpace(strings.TrimLeft(line, "# "))
		case strings.HasPrefix(line, "ACL "):
			rules[section], inside = append(rules[section], words[1:]), true
			n++
		case inside && strings.HasPrefix(line, "    "):
			list := rules[section]
			list[len(list)-1] = append(list[len(list)-1], words...)
		default:
			inside = false
		}
	}
	if n != 27 {
		t.Fatalf("%d ACL commands in SECURITY.md, expected 13 for all servers, 6 for a cluster and 8 for Sentinel", n)
	}
	return rules
}
