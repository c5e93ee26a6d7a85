//go:build unix

package itest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/itest/ledger"
	"github.com/godelayed/delayed/itest/procs"
)

// Kinds of events in addition to those of package ledger. A task's name is its id, and the attempt takes the place of
// the token.
const (
	failed ledger.Kind = "failed" // the handler returns an error
	ran    ledger.Kind = "ran"    // a gathered call is done; the id of the combined call is the detail
)

// The tasks that producers of TestKillLifecycle delay: only their names, signatures and options count.
var (
	lifeTask   = delayed.Func(func(context.Context, int, int) error { return nil }, delayed.Name("itest.life"))
	lifeGather = delayed.Func(func(context.Context, ...string) error { return nil }, delayed.Name("itest.life.gather"),
		delayed.Gather(delayed.GatherPolicy{Grace: 200 * time.Millisecond, MaxSize: 10}))
)

var lifeRole = procs.Define("life", func(ctx context.Context, s workerSetup) error {
	w, rdb, log, err := equip(s.URL, s.Ledger)
	if err != nil {
		return err
	}
	log.SetLevel(logrus.ErrorLevel)
	worker, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{s.Queue}, Concurrency: s.Concurrency, Prefetch: s.Prefetch, HeartbeatLife: s.Life,
		SweepInterval: s.Sweep,
		Backoff:       func(int) time.Duration { return time.Duration(50+rand.IntN(300)) * time.Millisecond },
		Schedulers:    []delayed.SchedulerConfig{{Queue: s.Queue, Logger: log}}, Logger: log,
	})
	if err != nil {
		return err
	}
	p := &lifeProcess{worker.ID(), w}
	err = worker.Register(delayed.Func(p.life, delayed.Name("itest.life")),
		delayed.Func(p.gather, delayed.Name("itest.life.gather")))
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, helloPrefix+worker.ID())
	return worker.Run(ctx)
})

// lifeProcess is what the functions of a worker process need.
type lifeProcess struct {
	id     string
	ledger *ledger.Writer
}

// start records that a task starts. The returned function records further events of the same run.
func (p *lifeProcess) start(ctx context.Context) func(ledger.Kind) {
	t := delayed.TaskFromContext(ctx)
	note := func(kind ledger.Kind) {
		p.ledger.Write(ledger.Event{Kind: kind, Task: t.ID(), Worker: p.id, Token: strconv.Itoa(t.Attempt())})
	}
	note(ledger.Start)
	return note
}

// life works for some milliseconds and fails as often as its argument says.
func (p *lifeProcess) life(ctx context.Context, millis, failures int) error {
	note := p.start(ctx)
	select {
	case <-time.After(time.Duration(millis) * time.Millisecond):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if delayed.TaskFromContext(ctx).Attempt() <= failures {
		note(failed)
		return errors.New("as told")
	}
	note(ledger.End)
	return nil
}

func (p *lifeProcess) gather(ctx context.Context, names ...string) error {
	note := p.start(ctx)
	<-time.After(time.Duration(len(names)) * time.Millisecond)
	for _, name := range names {
		p.ledger.Write(ledger.Event{Kind: ran, Task: name, Worker: p.id, Detail: delayed.TaskFromContext(ctx).ID()})
	}
	note(ledger.End)
	return nil
}

// TestKillLifecycle kills worker processes while tasks fail and are tried again, wait for their time, hold locks, are
// gathered and come from periodic entries. No task may be lost, none may start twice unless a killed worker held it,
// and no lock may remain.
func TestKillLifecycle(t *testing.T) {
	const processes = 5
	kills := inChaos(4, 12)
	takes := inChaos(7*time.Second, 22*time.Second) // how long producers enqueue
	server := redistest.Start(t)
	f := newFleet(t, server, workerSetup{
		Queue: redistest.Name(t), Concurrency: 8, Prefetch: 8, Life: time.Second, Sweep: 200 * time.Millisecond,
	})
	f.role = lifeRole
	var members []*member
	for range processes {
		members = append(members, f.start())
	}
	l := newLives(t, delayed.NewQueue(f.setup.Queue, handle(t, server)))
	ticks := l.tick(takes)
	var producers sync.WaitGroup
	over := time.After(takes)
	stop := make(chan struct{})
	for _, produce := range []func(i int){l.plain, l.later, l.unique, l.gathered} {
		producers.Go(func() { l.loop(stop, produce) })
	}
	k := &lifeKiller{fleet: f, deaths: map[string]int{}, held: map[string][]string{}}
	for range kills {
		<-time.After(takes / time.Duration(kills+1))
		i := k.kill(members)
		members[i] = f.start()
	}
	<-over
	close(stop)
	producers.Wait()
	waitForAtMost(t, time.Minute, "the last tick and all groups to be enqueued", func() bool {
		return time.Now().After(ticks[len(ticks)-1].Add(time.Second)) && f.ask("ZCARD", "_groups") == 0
	})
	f.awaitDrained(2*time.Minute, members)
	f.stop(members...)

	conn := server.Dial(t)
	redistest.CheckInvariants(t, conn, f.setup.Queue, redistest.Invariants{Idle: true})
	for _, suffix := range []string{
		"_locks", "_groups", "_gathered", "_scheduled", "_retry", "_parked",
		"_archived", "_tasks", "_info",
	} {
		if n, err := redis.Int(conn.Do("EXISTS", f.setup.Queue+suffix)); n != 0 || err != nil {
			t.Errorf("N%s was left behind, %v: %v", suffix, err, redistest.Dump(t, conn, f.setup.Queue)[suffix])
		}
	}
	log := f.log()
	l.check(log)
	l.checkTicks(log, ticks)
	reruns := k.checkReruns(log)
	t.Logf("%d tasks, %d of them in groups, %d ticks; %d kills; %d tasks started twice at one attempt",
		len(l.failures)+len(l.calls), len(l.calls), len(ticks), len(k.held), reruns)
	if reruns < kills {
		t.Errorf("%d tasks started twice, expected at least %d", reruns, kills)
	}
}

// lives records what was enqueued.
type lives struct {
	t *testing.T
	q *delayed.Queue

	mu       sync.Mutex          // protects the following
	failures map[string]int      // by id, how often the task fails before it is done
	due      map[string]int64    // by id, ms
	keys     map[string][]string // ids by lock, in the order in which they were accepted
	calls    []string            // names of calls that were gathered
	refused  int                 // how many calls found a lock taken
}

func newLives(t *testing.T, q *delayed.Queue) *lives {
	t.Helper()
	return &lives{t: t, q: q, failures: map[string]int{}, due: map[string]int64{}, keys: map[string][]string{}}
}

// loop enqueues tasks of one kind, at a rate that workers can handle.
func (l *lives) loop(stop <-chan struct{}, produce func(i int)) {
	pause := time.NewTicker(inChaos(10*time.Millisecond, 4*time.Millisecond))
	defer pause.Stop()
	for i := 0; ; i++ {
		produce(i)
		select {
		case <-pause.C:
		case <-stop:
			return
		}
	}
}

// add records an accepted task; it returns false for a refused one.
func (l *lives) add(ref *delayed.Ref, err error, failures int, due int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(err, delayed.ErrDuplicate) {
		l.refused++
		return false
	}
	if err != nil {
		l.t.Error(err)
		return false
	}
	l.failures[ref.ID()], l.due[ref.ID()] = failures, due
	return true
}

// plain enqueues tasks that fail up to three times. Some keep their result.
func (l *lives) plain(i int) {
	q := l.q
	if i%4 == 0 {
		q = q.With(delayed.KeepResult(time.Minute), delayed.Timeout(20*time.Second))
	}
	ref, err := q.Delay(lifeTask, 10+i%20, i%4)
	l.add(ref, err, i%4, 0)
}

// later enqueues tasks that wait for up to 6 s.
func (l *lives) later(i int) {
	wait := rand.Int64N(6000)
	due := time.Now().UnixMilli() + wait
	ref, err := l.q.With(delayed.In(time.Duration(wait)*time.Millisecond), delayed.MaxRetry(3)).Delay(lifeTask, 5, i%2)
	l.add(ref, err, i%2, due)
}

// unique enqueues tasks of which only one may exist for each key at a time.
func (l *lives) unique(i int) {
	key := strconv.Itoa(i % 23)
	q := l.q.With(delayed.UniqueKey(key, time.Hour))
	if i%3 == 0 {
		q = q.With(delayed.In(100 * time.Millisecond))
	}
	ref, err := q.Delay(lifeTask, 20, i%3)
	if l.add(ref, err, i%3, 0) {
		l.keys[key] = append(l.keys[key], ref.ID())
	}
}

// gathered enqueues calls of groups.
func (l *lives) gathered(i int) {
	name := fmt.Sprint("call", i)
	if _, err := l.q.With(delayed.Group(strconv.Itoa(i%7))).Delay(lifeGather, name); err != nil {
		l.t.Error(err)
		return
	}
	l.calls = append(l.calls, name)
}

// tick creates two entries that tick each second, one of which holds a lock, and returns the times of the ticks.
func (l *lives) tick(takes time.Duration) (ticks []time.Time) {
	from := time.Now().Truncate(time.Second).Add(2 * time.Second)
	until := from.Add(takes - 3*time.Second)
	for name, entry := range map[string]delayed.Entry{
		"each":  {Task: delayed.Call(lifeTask, 5, 1)},
		"alone": {Task: delayed.Call(lifeTask, 700, 0), Overlap: delayed.OverlapSkip},
	} {
		entry.Name, entry.Spec, entry.From, entry.Until, entry.CatchUp = name, "@every 1s", from, until, 100
		if err := l.q.Periodic().Set(l.t.Context(), entry); err != nil {
			l.t.Fatal(err)
		}
	}
	for tick := from; tick.Before(until); tick = tick.Add(time.Second) {
		ticks = append(ticks, tick)
	}
	return ticks
}

// check looks for tasks that were lost, ran too early, or ran together with one that held the same lock.
func (l *lives) check(log ledger.Log) {
	l.t.Helper()
	byTask := log.ByTask()
	for id, failures := range l.failures {
		events := byTask[id]
		if len(events.Of(ledger.End)) == 0 {
			l.t.Errorf("task %s was lost: %v", id, events)
			continue
		}
		seen := map[string]bool{}
		for _, e := range events {
			seen[e.Token] = true
		}
		if len(seen) != failures+1 {
			l.t.Errorf("task %s fails %d times, found attempts %v", id, failures, seen)
		}
		if start := events[0].Time.UnixMilli(); start < l.due[id] {
			l.t.Errorf("task %s began %d ms before its time", id, l.due[id]-start)
		}
	}
	for key, ids := range l.keys {
		for i := 1; i < len(ids); i++ {
			l.checkAlone("lock "+key, ids[i-1], ids[i], byTask)
		}
	}
	if l.refused == 0 {
		l.t.Error("no task has found its lock taken")
	}
	common := map[string]string{}
	for _, e := range log.Of(ran) {
		if other := common[e.Task]; other != "" && other != e.Detail {
			l.t.Errorf("%s is part of two calls, %s and %s", e.Task, other, e.Detail)
		}
		common[e.Task] = e.Detail
	}
	for _, call := range l.calls {
		if common[call] == "" {
			l.t.Errorf("%s was lost", call)
		}
	}
}

// checkAlone checks that each task began after the one before it, which had the same lock, was over.
func (l *lives) checkAlone(what, before, after string, byTask map[string]ledger.Log) {
	l.t.Helper()
	ends, starts := byTask[before].Of(ledger.End), byTask[after].Of(ledger.Start)
	if len(ends) > 0 && len(starts) > 0 && starts[0].Time.Before(ends[len(ends)-1].Time) {
		l.t.Errorf("%s: task %s began before %s was over: %v, %v", what, after, before, ends, starts)
	}
}

// checkTicks checks that each tick became one task, or none if the entry's previous task was not over.
func (l *lives) checkTicks(log ledger.Log, ticks []time.Time) {
	l.t.Helper()
	byTask := log.ByTask()
	var alone []string
	for _, tick := range ticks {
		if id := fmt.Sprintf("each@%d", tick.UnixMilli()); len(byTask[id].Of(ledger.End)) == 0 {
			l.t.Errorf("tick %s was lost: %v", id, byTask[id])
		}
		if id := fmt.Sprintf("alone@%d", tick.UnixMilli()); len(byTask[id]) > 0 {
			alone = append(alone, id)
		}
	}
	for i := 1; i < len(alone); i++ {
		l.checkAlone("entry", alone[i-1], alone[i], byTask)
	}
	if len(alone) < len(ticks)/3 {
		l.t.Errorf("%d of %d ticks of the entry that must not overlap became tasks", len(alone), len(ticks))
	}
	for id := range byTask {
		if name, _, ok := strings.Cut(id, "@"); ok && name == "each" &&
			!slices.ContainsFunc(ticks,
				func(at time.Time) bool { return id == fmt.Sprintf("each@%d", at.UnixMilli()) }) {
			l.t.Errorf("task %s is of no tick", id)
		}
	}
}

// lifeKiller kills workers and remembers what they held.
type lifeKiller struct {
	*fleet
	deaths map[string]int      // by task
	held   map[string][]string // by worker, ids as Redis held them when the process was dead
}

// kill kills a member while it runs a task, and returns the member's position. It stops the process first, so that the
// task is not over before the signal arrives.
func (k *lifeKiller) kill(members []*member) (victim int) {
	k.t.Helper()
	must := func(err error) {
		if err != nil {
			k.t.Fatal(err)
		}
	}
	waitFor(k.t, "a worker that runs a task to be killed", func() bool {
		victim = rand.IntN(len(members))
		m := members[victim]
		must(m.Pause())
		events := k.log().ByTask()
		ids := k.ids(m.id)
		runs := slices.ContainsFunc(ids, func(id string) bool { return isRunning(m.id, events[id]) })
		// A task that dies a third time is archived, so no task dies twice here.
		died := slices.ContainsFunc(ids, func(id string) bool { return k.deaths[id] > 0 })
		if !runs || died {
			must(m.Resume())
			return false
		}
		m.Kill()
		k.held[m.id] = k.ids(m.id)
		for _, task := range k.held[m.id] {
			k.deaths[task]++
		}
		return true
	})
	return victim
}

// isRunning says whether the last of a task's events is its start by a worker.
func isRunning(worker string, events ledger.Log) bool {
	if len(events) == 0 {
		return false
	}
	last := events[len(events)-1]
	return last.Kind == ledger.Start && last.Worker == worker
}

// ids returns the ids of the tasks that a worker holds.
func (k *lifeKiller) ids(worker string) (ids []string) {
	k.t.Helper()
	conn := k.pool.Get()
	defer conn.Close()
	messages, err := redis.StringMap(conn.Do("HGETALL", k.setup.Queue+"_processing:"+worker))
	if err != nil {
		k.t.Fatal(err)
	}
	for _, raw := range messages {
		m, err := wire.Parse([]byte(raw), wire.Default)
		if err != nil {
			k.t.Fatal(err)
		}
		ids = append(ids, m.Meta.ID)
	}
	return ids
}

// checkReruns returns the number of attempts that began more than once. It checks that a killed worker had held the
// task each time.
func (k *lifeKiller) checkReruns(log ledger.Log) (reruns int) {
	k.t.Helper()
	for id, starts := range log.Of(ledger.Start).ByTask() {
		last := map[string]ledger.Event{} // by attempt
		for _, e := range starts {
			before, again := last[e.Token]
			if last[e.Token] = e; !again {
				continue
			}
			reruns++
			if !slices.Contains(k.held[before.Worker], id) {
				k.t.Errorf("task %s started again at attempt %s although Redis did not hold it for a killed worker: %v",
					id, e.Token, starts)
			}
		}
	}
	return reruns
}
