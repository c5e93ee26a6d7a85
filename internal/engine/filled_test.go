package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/redistest"
)

// suspectLeaves are the ways in which a suspect leaves the executors. After each, other suspects must be admitted
// again.
var suspectLeaves = map[string]struct {
	starts bool // whether the suspect starts
	leave  func(*crew, *lane.Claim)
}{
	"it ends":             {true, func(c *crew, s *lane.Claim) { c.end(s, endDone) }},
	"it fails":            {true, func(c *crew, s *lane.Claim) { c.end(s, endSeenTo) }},
	"it leaves":           {true, func(c *crew, s *lane.Claim) { c.end(s, endGoexit) }},
	"it is stuck":         {true, func(c *crew, s *lane.Claim) { c.replaceAll(s) }},
	"all is taken back":   {false, func(c *crew, _ *lane.Claim) { c.TakeBack(nil) }},
	"its queue is paused": {false, func(c *crew, s *lane.Claim) { c.TakeBack(s.Lane) }},
	"it is dismissed":     {false, func(c *crew, s *lane.Claim) { c.TakeBack(nil); c.ForgetLone(s) }},
}

// replaceAll starts other executors instead of those that run a task.
func (c *crew) replaceAll(task *lane.Claim) {
	for i := range c.Slots {
		c.Replace(i, task)
	}
}

// inCrewWithSpares is inCrew with executors in place of those that are stuck.
func inCrewWithSpares(t *testing.T, n, spares int, test func(*crew)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, n, 0)
		c.Reserve(spares)
		c.Start()
		test(c)
		synctest.Wait()
		c.TakeBack(nil)
		for _, leave := range c.ways {
			close(leave)
		}
		c.Stop()
		c.Sound.Wait()
		c.Stuck.Wait()
	})
}

// expectAllFree expects that the executors have as much room as at the start.
func (c *crew) expectAllFree(what string) {
	c.t.Helper()
	synctest.Wait()
	if !signalled(c.Changed) {
		c.t.Errorf("%s: the fetcher is not woken", what)
	}
	n, _, _ := c.ClaimBudget()
	if n != c.N || c.LoneTask() != nil || c.Crowded.Load() {
		c.t.Errorf("%s: room for %d beside %v, expected %d; crowded: %v", what, n, c.LoneTask(), c.N, c.Crowded.Load())
	}
}

// The worker claims again after the lone task has left, in whatever way.
func TestLoneTaskLeaves(t *testing.T) {
	for name, way := range suspectLeaves {
		inCrewWithSpares(t, 4, 1, func(c *crew) {
			lone := c.suspects(c.lane, 1, 9)
			if !c.AdmitSuspect(lone[0]) || c.LoneTask() != lone[0] {
				t.Fatal("it is not alone")
			}
			c.Hold(!way.starts)
			c.Add(lone)
			synctest.Wait()
			signalled(c.Changed)
			if n, _, _ := c.ClaimBudget(); n != 0 {
				t.Errorf("%s: room for %d beside it", name, n)
			}
			way.leave(c, lone[0])
			c.expectAllFree(name)
		})
	}
}

// A worker with as many suspects as it may have takes another one after one has left, in whatever way.
func TestSuspectLeaves(t *testing.T) {
	for name, way := range suspectLeaves {
		inCrewWithSpares(t, 10, 1, func(c *crew) {
			tasks := c.suspects(c.lane, 4, 2)
			if !c.AdmitSuspect(tasks[0]) {
				t.Fatal("the first may not come in")
			}
			c.Hold(!way.starts)
			c.Add(tasks[:1])
			synctest.Wait()
			if !c.AdmitSuspect(tasks[1]) {
				t.Fatal("the second may not come in")
			}
			c.Add(tasks[1:2])
			synctest.Wait()
			if c.AdmitSuspect(tasks[2]) || !c.Crowded.Load() {
				t.Fatal("the third comes in")
			}
			signalled(c.Changed)
			way.leave(c, tasks[0])
			if synctest.Wait(); !signalled(c.Changed) || c.Crowded.Load() || !c.AdmitSuspect(tasks[3]) {
				t.Errorf("%s: no other comes in", name)
			}
		})
	}
}

// filler is a worker on which the test performs random actions.
type filler struct {
	*bench
	rng   *rand.Rand
	w     *started
	f     *Function
	leave atomic.Pointer[chan struct{}] // tasks that wait for it end when it is closed
	runs  atomic.Int64                  // runs of tasks that are probes
	did   []string
	refs  []*Ref
}

// handle is the handler of its tasks.
func (k *filler) handle(_ context.Context, what string) error {
	switch what {
	case "wait":
		<-*k.leave.Load()
	case "fail":
		return lane.Decide(lane.DecisionArchive, 0, errors.New("planted"))
	case "panic":
		panic("planted")
	case "exit":
		runtime.Goexit()
	case "probe":
		k.runs.Add(1)
		<-*k.leave.Load()
	}
	return nil
}

// act performs a random action.
func (k *filler) act() {
	k.T.Helper()
	whats := []string{"quick", "wait", "wait", "wait", "fail", "panic", "exit"}
	what := whats[k.rng.IntN(len(whats))]
	said := what
	switch op := k.rng.IntN(12); op {
	case 0, 1:
		k.refs = append(k.refs, k.delay(k.f, what))
	case 2:
		k.refs = append(k.refs, k.delayWithin(time.Millisecond, k.f, what))
		said = "timeout " + what
	case 3, 4, 5:
		deaths := 1 + k.rng.IntN(4)
		k.delayDied(deaths, k.f, what)
		said = fmt.Sprint(deaths, " deaths ", what)
	case 6, 7:
		said = k.pauseOrResume()
	case 8:
		if n := len(k.refs); n > 0 {
			_ = k.refs[k.rng.IntN(n)].Cancel(k.T.Context()) // it may have ended
		}
		said = "cancel"
	case 9:
		k.letGo()
		said = "all go"
	case 10:
		k.w.fetcher.Nudge(0, k.rng.IntN(2) == 0)
		said = "nudge"
	default:
		// the worker may have handled earlier actions, or not
		<-time.After(time.Duration(k.rng.IntN(15)) * time.Millisecond)
		said = "a while"
	}
	k.did = append(k.did, said)
}

func (k *filler) pauseOrResume() string {
	order := k.q.Worker(k.w.ID())
	switch k.rng.IntN(6) {
	case 0:
		k.w.Pause()
		return "pause"
	case 1:
		k.w.Resume()
		return "resume"
	case 2:
		k.Must(k.q.Pause(k.T.Context()))
		return "pause the queue"
	case 3:
		k.Must(k.q.Resume(k.T.Context()))
		return "resume the queue"
	case 4:
		k.Must(order.Pause(k.T.Context()))
		return "order to pause"
	default:
		k.Must(order.Resume(k.T.Context()))
		return "order to resume"
	}
}

// calm ends all actions that are under way.
func (k *filler) calm() {
	k.T.Helper()
	k.w.Resume()
	k.Must(k.q.Worker(k.w.ID()).Resume(k.T.Context()))
	k.Must(k.q.Resume(k.T.Context()))
	k.Until("nothing is left to do", func() bool {
		k.letGo()
		return k.left() == 0 && !k.w.paused.Load()
	})
}

// left returns the number of tasks that are not over. It reads all places in one step: between two steps a task could
// move to a place that was read already.
func (k *filler) left() int {
	k.T.Helper()
	return k.Int("EVAL", `return redis.call('LLEN', KEYS[1]) + redis.call('LLEN', KEYS[1] .. '_suspects')
		+ redis.call('ZCARD', KEYS[1] .. '_retry') + redis.call('HLEN', KEYS[1] .. '_processing:' .. ARGV[1])`,
		1, k.Name, k.w.ID())
}

// letGo lets all waiting tasks end, but no later ones.
func (k *filler) letGo() {
	later := make(chan struct{})
	close(*k.leave.Swap(&later))
}

// After random actions, a worker still fills all of its executors, and takes suspects.
func TestWorkerFillsItsExecutorsAgain(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	k := &filler{bench: newBench(t), rng: rand.New(rand.NewPCG(seed, 0))}
	never := make(chan struct{})
	k.leave.Store(&never)
	k.f = k.fn("f", k.handle)
	cfg := k.config()
	cfg.Concurrency, cfg.MaxStuck, cfg.StuckAfter, cfg.NoSweeper = 10, 100, time.Millisecond, true
	w, err := NewWorker(k.rdb, cfg)
	k.Must(err)
	k.Must(w.Register([]*Function{k.f}, nil))
	w.fetcher.Patience = 5 * time.Millisecond
	k.w = k.start(w)
	defer func() {
		if t.Failed() {
			t.Logf("seed %d: %q", seed, k.did)
		}
	}()
	for round := range 40 {
		k.did = k.did[:0]
		for range 1 + k.rng.IntN(10) {
			k.act()
		}
		k.calm()
		k.runs.Store(0)
		suspects := 2 * (round % 2) // as many as may run at a time after two deaths
		for range suspects {
			k.delayDied(2, k.f, "probe")
		}
		for range cfg.Concurrency - suspects {
			k.delay(k.f, "probe")
		}
		k.Until("all executors are busy", func() bool { return k.runs.Load() == int64(cfg.Concurrency) })
		k.calm()
	}
	k.Check(redistest.Invariants{})
}
