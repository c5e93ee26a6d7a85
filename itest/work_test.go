//go:build unix

package itest_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/childproc"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/itest/ledger"
	"github.com/godelayed/delayed/itest/procs"
	"github.com/godelayed/delayed/itest/witness"
	"github.com/godelayed/delayed/workermain"
)

// The functions of the worker processes. Their tasks' names are "k" and seven digits, so that the tests find a name in
// the bytes of any message.
const (
	workPath   = "itest.work"   // works for some milliseconds, or until its context ends
	deafPath   = "itest.deaf"   // works for some milliseconds, whatever happens
	poisonPath = "itest.poison" // ends its process
)

// The tasks that producers delay: only their names and signatures count.
var (
	workTask   = delayed.Func(func(context.Context, string, int) error { return nil }, delayed.Name(workPath))
	deafTask   = delayed.Func(func(string, int) error { return nil }, delayed.Name(deafPath))
	poisonTask = delayed.Func(func(string) error { return nil }, delayed.Name(poisonPath))
)

var taskName = regexp.MustCompile(`k[0-9]{7}`)

// key names the i-th task of a test.
func key(i int) string { return fmt.Sprintf("k%07d", i) }

func taskOf(message []byte) string { return string(taskName.Find(message)) }

// workerSetup configures a worker process.
type workerSetup struct {
	URL, Queue, Ledger    string
	Concurrency, Prefetch int
	Life, Sweep           time.Duration
	Grace                 time.Duration // and that after contexts have ended; 0: defaults
}

// exitOfPoison is the exit code of a process that ran a poisonous task.
const exitOfPoison = 7

// equip opens what a worker process needs: its ledger, Redis and a log that goes to the test.
func equip(url, file string) (*ledger.Writer, *delayed.Store, *logrus.Logger, error) {
	w, err := ledger.Create(file)
	if err != nil {
		return nil, nil, nil, err
	}
	rdb, err := delayed.Dial(url)
	if err != nil {
		return nil, nil, nil, err
	}
	log := logrus.New()
	log.SetOutput(os.Stderr)
	return w, rdb, log, nil
}

var workerRole = procs.Define("worker", func(ctx context.Context, s workerSetup) error {
	p, rdb, err := newWorkerProcess(s)
	if err != nil {
		return err
	}
	worker, err := delayed.NewWorker(rdb, s.config())
	if err != nil {
		return err
	}
	if err := p.join(worker); err != nil {
		return err
	}
	return worker.Run(ctx)
})

// mainRole is the same worker as a program of package workermain.
var mainRole = procs.Define("workermain", func(_ context.Context, s workerSetup) error {
	p, rdb, err := newWorkerProcess(s)
	if err != nil {
		return err
	}
	os.Exit(workermain.Run(workermain.Config{
		Setup:  func(_ context.Context, w *delayed.Worker) error { return p.join(w) },
		Worker: s.config(),
		Dial:   func(string) (*delayed.Store, error) { return rdb, nil },
		Args:   []string{"-redis", s.URL, "-queues", s.Queue},
	}))
	return nil
})

// config returns the configuration of a worker.
func (s *workerSetup) config() delayed.WorkerConfig {
	log := logrus.New()
	log.SetOutput(os.Stderr)
	log.SetFormatter(&logrus.TextFormatter{TimestampFormat: time.RFC3339Nano, FullTimestamp: true})
	return delayed.WorkerConfig{
		Queues: delayed.Strict{s.Queue}, Concurrency: s.Concurrency, Prefetch: s.Prefetch, HeartbeatLife: s.Life,
		SweepInterval: s.Sweep,
		Grace:         s.Grace, CancelGrace: s.Grace, Logger: log,
	}
}

// newWorkerProcess opens what the functions of a worker process need, and Redis.
func newWorkerProcess(s workerSetup) (*workerProcess, *delayed.Store, error) {
	w, err := ledger.Create(s.Ledger)
	if err != nil {
		return nil, nil, err
	}
	pool := &redis.Pool{
		MaxIdle: 10,
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialURLContext(ctx, s.URL, redis.DialConnectTimeout(5*time.Second),
				redis.DialReadTimeout(5*time.Second))
		},
	}
	source := witness.New(pool, w, taskOf)
	return &workerProcess{ledger: w, witness: source}, delayed.FromSource(source), nil
}

// join registers the functions with the worker of the process, and prints its id.
func (p *workerProcess) join(w *delayed.Worker) error {
	p.id = w.ID()
	err := w.Register(
		delayed.Func(p.work, delayed.Name(workPath)), delayed.Func(p.deaf, delayed.Name(deafPath)),
		delayed.Func(p.poison, delayed.Name(poisonPath)),
	)
	fmt.Fprintln(os.Stderr, helloPrefix+w.ID())
	return err
}

// helloPrefix begins the line in which a worker process prints its worker's id.
const helloPrefix = "worker id "

// workerProcess is what the functions of a worker process need.
type workerProcess struct {
	id      string
	ledger  *ledger.Writer
	witness *witness.Witness
}

// start records that a task starts. The returned function records further events of the same run.
func (p *workerProcess) start(task string) func(kind ledger.Kind, detail string) {
	e := ledger.Event{Task: task, Worker: p.id, Token: p.witness.Token(task)}
	note := func(kind ledger.Kind, detail string) {
		e.Kind, e.Detail = kind, detail
		p.ledger.Write(e)
	}
	note(ledger.Start, "")
	return note
}

func (p *workerProcess) work(ctx context.Context, task string, millis int) error {
	note := p.start(task)
	done := time.NewTimer(time.Duration(millis) * time.Millisecond)
	defer done.Stop()
	select {
	case <-done.C:
		note(ledger.End, "")
		return nil
	case <-ctx.Done():
		note(ledger.Canceled, context.Cause(ctx).Error())
		return context.Cause(ctx)
	}
}

func (p *workerProcess) deaf(task string, millis int) {
	note := p.start(task)
	<-time.After(time.Duration(millis) * time.Millisecond)
	note(ledger.End, "")
}

func (p *workerProcess) poison(task string) {
	p.start(task)
	<-time.After(50 * time.Millisecond) // so that other tasks are in hand when the process ends
	os.Exit(exitOfPoison)
}

// fleet is a number of worker processes of one setup.
type fleet struct {
	t      *testing.T
	server *redistest.Server
	pool   *redis.Pool
	setup  workerSetup
	role   procs.Role[workerSetup]
}

// member is one worker process.
type member struct {
	*childproc.Process
	id string // of its worker
}

func newFleet(t *testing.T, server *redistest.Server, setup workerSetup) *fleet {
	t.Helper()
	setup.URL = server.URL()
	setup.Ledger = t.TempDir()
	return &fleet{t, server, server.Pool(t), setup, workerRole}
}

// start starts a worker process and waits until it knows its id, which is before the worker claims anything.
func (f *fleet) start() *member {
	f.t.Helper()
	m := &member{Process: f.role.Start(f.t, f.setup)}
	waitFor(f.t, "a worker process to tell its id", func() bool {
		running := m.Running() // looked at first: a process may tell its id, work, and end before the next look
		_, rest, ok := cutLine(m.Output(), helloPrefix)
		if !ok && !running {
			f.t.Fatalf("a worker process ended at its start: %s\n%s", m.Describe(), m.Output())
		}
		m.id = rest
		return ok
	})
	return m
}

// stop stops all processes at once, as an operator would.
func (f *fleet) stop(members ...*member) {
	f.t.Helper()
	var wg sync.WaitGroup
	for _, m := range members {
		wg.Go(func() {
			if err := m.Stop(40 * time.Second); err != nil || m.ExitCode() != 0 {
				f.t.Errorf("worker %s: %v, %s\n%s", m.id, err, m.Describe(), m.Output())
			}
		})
	}
	wg.Wait()
}

// log reads the ledgers of all processes.
func (f *fleet) log() ledger.Log {
	f.t.Helper()
	log, err := ledger.Read(f.setup.Ledger)
	if err != nil {
		f.t.Fatal(err)
	}
	return log.WithTasks()
}

// claims returns what Redis holds for a worker: tasks by token.
func (f *fleet) claims(worker string) map[string]string {
	f.t.Helper()
	conn := f.pool.Get()
	defer conn.Close()
	messages, err := redis.StringMap(conn.Do("HGETALL", f.setup.Queue+"_processing:"+worker))
	if err != nil {
		f.t.Fatal(err)
	}
	for token, message := range messages {
		messages[token] = taskOf([]byte(message))
	}
	return messages
}

// pending returns the number of pending tasks.
func (f *fleet) pending() int { return f.ask("LLEN", "") + f.ask("LLEN", "_suspects") }

// ask returns the answer of a command for a key of the queue, given by its suffix.
func (f *fleet) ask(cmd, suffix string) int {
	f.t.Helper()
	conn := f.pool.Get()
	defer conn.Close()
	n, err := redis.Int(conn.Do(cmd, f.setup.Queue+suffix))
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

// awaitDrained waits until no task is pending, claimed, scheduled or retrying, and until dead workers are removed.
// living is the number of workers that Redis must still know.
func (f *fleet) awaitDrained(limit time.Duration, living []*member) {
	f.t.Helper()
	conn := f.server.Dial(f.t)
	waitForAtMost(f.t, limit, "all tasks to be done", func() bool {
		left, workers, err := drained(tasksLeft.Do(conn, f.setup.Queue))
		if err != nil {
			f.t.Fatal(err)
		}
		return left == 0 && len(workers) == len(living) && !slices.ContainsFunc(living,
			func(m *member) bool { return !slices.Contains(workers, m.id) })
	})
}

// drained takes the reply of tasksLeft apart.
func drained(reply any, err error) (left int, workers []string, _ error) {
	values, err := redis.Values(reply, err)
	if err == nil {
		_, err = redis.Scan(values, &left, &workers)
	}
	return left, workers, err
}

// tasksLeft counts at one moment, for tasks go round, what a queue holds, and lists its workers.
var tasksLeft = redis.NewScript(1, `
	local q, ids = KEYS[1], redis.call('SMEMBERS', KEYS[1] .. '_workers')
	local left = redis.call('LLEN', q) + redis.call('LLEN', q .. '_suspects') +
		redis.call('ZCARD', q .. '_scheduled') + redis.call('ZCARD', q .. '_retry')
	for _, id in ipairs(ids) do left = left + redis.call('HLEN', q .. '_processing:' .. id) end
	return {left, ids}`)

// cutLine returns what is before a prefix, and what follows it in the same line; ok reports whether there is such a
// line.
func cutLine(text, prefix string) (before, rest string, ok bool) {
	loc := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(prefix) + `(.*)\n`).FindStringSubmatchIndex(text)
	if loc == nil {
		return "", "", false
	}
	return text[:loc[0]], text[loc[2]:loc[3]], true
}
