//go:build unix

package itest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/itest/ledger"
)

// class says who writes the message of a task, and in which form.
type class string

const (
	plain      class = "plain"
	extended   class = "extended"
	pythonMade class = "Python-made"
)

// TestKill kills worker processes that hold claims. No task may be lost, and one may start twice only if a killed
// worker held it.
func TestKill(t *testing.T) {
	const processes = 8
	tasks := inChaos(6_000, 20_000)
	kills := inChaos(8, 24)
	rerunsMin := 4 * kills
	server := redistest.Start(t)
	f := newFleet(t, server, workerSetup{
		Queue: redistest.Name(t), Concurrency: 6, Prefetch: 12, Life: 2 * time.Second, Sweep: 500 * time.Millisecond,
	})
	classes := map[string]class{}
	enqueueMix(t, server, f.setup.Queue, tasks, classes)
	shuffle(t, server, f.setup.Queue)
	var members []*member
	for range processes {
		members = append(members, f.start())
	}
	start := time.Now()
	k := &killer{
		fleet: f, deaths: map[string]int{}, held: map[string]map[string]string{},
		more: func() {
			// Paused: otherwise the tasks of one class would be done before those of the next are enqueued.
			q := delayed.NewQueue(f.setup.Queue, handle(t, server))
			if err := q.Pause(t.Context()); err != nil {
				t.Fatal(err)
			}
			enqueueMix(t, server, f.setup.Queue, 5*oneClass, classes)
			shuffle(t, server, f.setup.Queue)
			if err := q.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
	}
	for n := range kills {
		// Spread the kills over the first two thirds of the run: while many tasks are pending, workers have some in
		// hand.
		waitForAtMost(t, 3*time.Minute, "progress", func() bool {
			return f.pending() <= tasks-tasks*2*(n+1)/(3*kills+3)
		})
		i := k.kill(members, n%2 == 0)
		members[i] = f.start()
	}
	f.awaitDrained(3*time.Minute, members)
	took := time.Since(start)
	f.stop(members...)
	redistest.CheckInvariants(t, server.Dial(t), f.setup.Queue, redistest.Invariants{Idle: true})
	if n, err := redis.Int(server.Do(t, "HLEN", f.setup.Queue+"_locks"), nil); n != 0 || err != nil {
		t.Errorf("%d locks are left behind, %v", n, err)
	}

	log := f.log()
	if lost := log.Of(ledger.End).Missing(keysOf(classes)); len(lost) > 0 {
		t.Errorf("%d of %d tasks were lost: %q …", len(lost), len(classes), lost[:min(5, len(lost))])
	}
	for _, counter := range []struct {
		name string
		want int
	}{{"processed", len(classes)}, {"archived", 0}, {"failed", 0}} {
		if n := count(t, server, f.setup.Queue, counter.name); n != counter.want {
			t.Errorf("Redis counted %d tasks as %s, expected %d", n, counter.name, counter.want)
		}
	}
	for task, acks := range log.Of(ledger.Acked).Repeated() {
		t.Errorf("task %s was acknowledged more than once: %v", task, acks)
	}
	reruns := k.checkReruns(log)
	withPrefetched := k.checkKills(log)
	byClass := map[class]int{}
	for _, task := range reruns {
		byClass[classes[task]]++
	}
	t.Logf("%d tasks in %v, %d kills, %d of them with prefetched tasks in hand; %d tasks started twice: %v",
		len(classes), took.Round(time.Millisecond), len(k.held), withPrefetched, len(reruns), byClass)
	if len(reruns) < rerunsMin {
		t.Errorf("%d tasks started twice, expected at least %d", len(reruns), rerunsMin)
	}
	for _, c := range []class{plain, extended, pythonMade} {
		if byClass[c] == 0 {
			t.Errorf("no %s task started twice", c)
		}
	}
}

// killer kills workers and remembers what they held.
type killer struct {
	*fleet
	deaths map[string]int               // by task
	held   map[string]map[string]string // by worker: tasks by token, as Redis held them when the process was dead
	more   func()                       // enqueues tasks; called when none is left, as when the test is slow
}

// kill kills a member that holds claims, of which some have not started if prefetched is set, and returns its position.
func (k *killer) kill(members []*member, prefetched bool) int {
	k.t.Helper()
	least := 1
	if prefetched {
		least = k.setup.Concurrency + 1
	}
	victim := -1
	waitFor(k.t, "a worker with claims", func() bool {
		if k.pending() == 0 {
			k.more()
		}
		for _, i := range rand.Perm(len(members)) {
			if claims := k.claims(members[i].id); len(claims) >= least && k.spare(claims) {
				members[i].Kill()
				victim = i
				return true
			}
		}
		return false
	})
	id := members[victim].id
	claims := k.claims(id)
	if len(claims) == 0 {
		// It finished its tasks between the look and the kill, so this kill does not count.
		members[victim] = k.start()
		return k.kill(members, prefetched)
	}
	k.held[id] = claims
	for _, task := range claims {
		k.deaths[task]++
	}
	return victim
}

// spare reports whether killing a worker would not archive an innocent task for having died three times.
func (k *killer) spare(claims map[string]string) bool {
	for _, task := range claims {
		if k.deaths[task] >= 2 {
			return false
		}
	}
	return true
}

// checkReruns returns the tasks that started more than once. It checks that a killed worker had held the task each
// time.
func (k *killer) checkReruns(log ledger.Log) []string {
	k.t.Helper()
	var tasks []string
	for task, starts := range log.Of(ledger.Start).Repeated() {
		tasks = append(tasks, task)
		for _, e := range starts[:len(starts)-1] {
			if k.held[e.Worker][e.Token] != task {
				k.t.Errorf("task %s started again although Redis did not hold its claim %s at a killed worker: %v",
					task, e.Token, starts)
			}
		}
	}
	slices.Sort(tasks)
	return tasks
}

// checkKills returns how many of the killed workers held tasks that they had not started.
func (k *killer) checkKills(log ledger.Log) (withPrefetched int) {
	k.t.Helper()
	starts := log.Of(ledger.Start).ByClaim()
	for worker, claims := range k.held {
		unstarted := 0
		for token := range claims {
			if len(starts[ledger.Claim(worker, token)]) == 0 {
				unstarted++
			}
		}
		if unstarted > 0 {
			withPrefetched++
		}
	}
	if 2*withPrefetched < len(k.held) {
		k.t.Errorf("%d of %d killed workers held prefetched tasks, expected half of them", withPrefetched, len(k.held))
	}
	return withPrefetched
}

// oneClass is how many tasks of a class enqueueMix enqueues before it goes on with the next class. After five times as
// many it begins with the first class again.
const oneClass = 500

// enqueueMix enqueues n more tasks, of 3 to 60 ms and of every class, and notes the class of each.
func enqueueMix(t *testing.T, server *redistest.Server, queue string, n int, classes map[string]class) {
	t.Helper()
	q, legacy := delayed.NewQueue(queue, handle(t, server)), legacyQueue(t, server, queue)
	first := len(classes)
	for i := first; i < first+n; {
		switch c := []class{plain, extended, pythonMade, extended, plain}[i/oneClass%5]; c {
		case pythonMade:
			runPython(t, "producer.py", "--url", server.URL(), "--queue", queue, "load", "--go-path",
				workPath, "--prefix", "k", "--first", fmt.Sprint(1_000_000+i), "--count", fmt.Sprint(oneClass),
				"--millis", "30")
			for range oneClass {
				classes[key(1_000_000+i)] = c
				i++
			}
		default:
			batch := make([]*delayed.Task, oneClass)
			for j := range batch {
				batch[j] = delayed.Call(workTask, key(1_000_000+i), 3*(1+i%20))
				classes[key(1_000_000+i)] = c
				i++
			}
			to := q
			switch {
			case c == plain:
				to = legacy
			case i/oneClass%5 == 2: // each has a lock of its own
				to = q.With(delayed.Unique(time.Hour))
			}
			if _, err := to.DelayMany(t.Context(), batch...); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// shuffle mixes the pending tasks in one step, so that a worker holds tasks of every class whenever it dies.
func shuffle(t *testing.T, server *redistest.Server, queue string) {
	t.Helper()
	server.Do(t, "EVAL", `
		local all = redis.call('LRANGE', KEYS[1], 0, -1)
		redis.call('DEL', KEYS[1])
		math.randomseed(ARGV[1])
		for i = #all, 2, -1 do
			local j = math.random(i)
			all[i], all[j] = all[j], all[i]
		end
		for i = 1, #all, 1000 do
			redis.call('RPUSH', KEYS[1], unpack(all, i, math.min(i + 999, #all)))
		end`, 1, queue, rand.Int32())
}

func keysOf(classes map[string]class) []string {
	var keys []string
	for task := range classes {
		keys = append(keys, task)
	}
	slices.Sort(keys)
	return keys
}
