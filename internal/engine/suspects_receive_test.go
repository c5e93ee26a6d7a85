package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed/internal/engine/child"
	"github.com/godelayed/delayed/internal/engine/fetch"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/state"
)

// onLog is a logger that calls a function for each line.
type onLog func()

func (fn onLog) Write(p []byte) (int, error) { fn(); return len(p), nil }

func (fn onLog) logger() logrus.FieldLogger {
	l := logrus.New()
	l.SetOutput(fn)
	return l
}

// receivingWorker is a worker that does not run: tests claim for it and check what it does with the claims.
type receivingWorker struct {
	*Worker
	b *bench
	l *lane.Lane // of its first queue
	f *Function
}

// newReceivingWorker returns a worker of some queues with a fresh heartbeat in Redis.
func newReceivingWorker(t *testing.T, change func(*WorkerConfig)) *receivingWorker {
	t.Helper()
	b := newBench(t)
	cfg := b.config()
	if change != nil {
		change(&cfg)
	}
	w, err := NewWorker(b.rdb, cfg)
	b.Must(err)
	r := &receivingWorker{w, b, w.lanes[0], b.fn("f", func(string) {})}
	b.Must(w.Register([]*Function{r.f}, nil))
	f := w.fetcher
	f.Prepare()
	for i := range f.Queues {
		f.Queues[i].HasTasks = false
	}
	now := time.Now()
	for _, l := range w.lanes {
		b.Do("SET", b.Name+"_worker:"+w.ID(), "v", "PX", 60000)
		l.Confirmed.Store(&now)
	}
	return r
}

// claim claims the next tasks.
func (r *receivingWorker) claim(n int) []*lane.Claim {
	r.b.T.Helper()
	claims, _, err := r.l.Claim(r.b.T.Context(), redisstore.ClaimCall{Most: n}, nil)
	if err != nil || len(claims) != n {
		r.b.T.Fatalf("%d claims, %v, expected %d", len(claims), err, n)
	}
	return claims
}

// took receives the next tasks and checks how many of them will run, and how many are ready then.
func (r *receivingWorker) took(what string, n, kept, ready int) {
	r.b.T.Helper()
	if got := r.receiver.Receive(r.b.T.Context(), r.claim(n)); got != kept || len(r.exec.Ready) != ready {
		r.b.T.Errorf("%s: %d are to run and %d are ready, expected %d and %d", what, got, len(r.exec.Ready), kept,
			ready)
	}
}

// ends checks the endings that the finishers have, and removes them.
func (r *receivingWorker) ends(what string, want ...lifecycle.Outcome) {
	r.b.T.Helper()
	var got []lifecycle.Outcome
	for _, e := range finisherOf(r.l).Pending {
		got = append(got, e.Outcome)
	}
	finisherOf(r.l).Pending = nil
	if len(got) != len(want) {
		r.b.T.Fatalf("%s: endings %v, expected %v", what, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			r.b.T.Errorf("%s: endings %v, expected %v", what, got, want)
		}
	}
}

// A suspect is marked as alone only if the worker has no other task, whatever is claimed with it. The worker claims
// nothing ahead for a while, so that other workers can take what it gives back.
func TestSuspectBesideOthersIsNotAlone(t *testing.T) {
	r := newReceivingWorker(t, nil)
	r.b.delay(r.f, "fresh")
	r.took("a fresh task", 1, 1, 1)
	if !r.exec.NoAheadUntil.IsZero() {
		t.Error("the worker is restless without a suspect")
	}
	r.b.delayDied(1, r.f, "suspect")
	r.took("a suspect", 1, 1, 2)
	if r.receiver.Alone.Load() != nil || r.b.Hash("_claims:" + r.ID())[redisstore.MarkAlone] != "" {
		t.Error("the suspect is noted as alone")
	}
	if !r.exec.NoAheadUntil.After(time.Now()) {
		t.Error("the worker may claim ahead")
	}
}

// If the mark of a suspect cannot be removed, the worker gives back the tasks that it may not start because of that.
func TestTasksGoBackWhenASuspectStaysNoted(t *testing.T) {
	r := newReceivingWorker(t, nil)
	r.b.delayDied(1, r.f, "suspect")
	r.took("a suspect", 1, 1, 1)
	if r.receiver.Alone.Load() == nil {
		t.Fatal("the suspect is not noted as alone")
	}
	r.b.delay(r.f, "fresh")
	claims := r.claim(1)
	r.b.Do("SET", r.b.Name+"_claims:"+r.ID(), "of another type")
	if n := r.receiver.Receive(t.Context(), claims); n != 0 || len(r.exec.Ready) != 1 {
		t.Errorf("%d are to run, and %d are ready, expected the suspect alone", n, len(r.exec.Ready))
	}
	r.ends("the fresh task", lifecycle.OutcomeRelease)
}

// A suspect that is claimed among other tasks goes to the list of suspects, and the fetcher looks there.
func TestSuspectSetApartIsLookedFor(t *testing.T) {
	r := newReceivingWorker(t, nil)
	r.b.delayDied(2, r.f, "suspect")
	r.took("a suspect of two deaths", 1, 0, 0)
	r.ends("it", lifecycle.OutcomeDefer)
	if !r.l.HasSuspects {
		t.Error("nobody looks for it")
	}
	r.b.Do("DEL", r.b.Name+"_worker:"+r.ID())
	r.fetcher.ClaimSuspect(t.Context(), 0, 1, 0)
	if !r.l.HasSuspects {
		t.Error("nobody looks for it again after a claim that has failed")
	}
}

// A suspect that runs in a child process waits for nobody, unless its workers have died all the same.
func TestSuspectInQuarantine(t *testing.T) {
	r := newReceivingWorker(t, func(cfg *WorkerConfig) { cfg.Isolation = &child.Config{} })
	r.Quarantine()
	r.b.delay(r.f, "fresh")
	r.b.delayDied(2, r.f, "suspect")
	r.took("a suspect of two deaths", 2, 2, 2)
	r.b.delayDied(3, r.f, "suspect")
	r.took("a suspect of three deaths", 1, 0, 2)
	r.ends("it", lifecycle.OutcomeDefer)
}

// Tasks that were claimed before the worker knew of a pause do not start.
func TestPauseWhileTasksAreReceived(t *testing.T) {
	r := newReceivingWorker(t, nil)
	r.b.delay(r.f, "before")
	claims := r.claim(1)
	r.l.Control.Paused.Store(true)
	if n := r.receiver.Receive(t.Context(), claims); n != 0 || len(r.exec.Ready) != 0 {
		t.Errorf("%d are to run", n)
	}
	r.ends("a task of a paused queue", lifecycle.OutcomeRelease)

	var l *lane.Lane
	r = newReceivingWorker(t, func(cfg *WorkerConfig) {
		cfg.Logger = onLog(func() { l.Control.Paused.Store(true) }).logger()
	})
	l = r.l
	r.b.delay(r.b.fn("unknown", func() {})) // this writes a log line
	r.b.delay(r.f, "meanwhile")
	r.took("the pause comes meanwhile", 2, 1, 0)
	r.ends("both", lifecycle.OutcomePark, lifecycle.OutcomeRelease)
}

// While Redis does not say which tasks were canceled, claimed ones go back, and their queue rests: otherwise the
// worker would claim them again at once.
func TestQueueRestsWhileCancellationsAreUnknown(t *testing.T) {
	r := newReceivingWorker(t, nil)
	r.b.delay(r.f, "x")
	r.b.Do("HSET", r.b.Name+"_control", "version", "5")
	r.b.Do("SET", r.b.Name+"_revoked", "of another type")
	before := time.Now()
	r.took("it", 1, 0, 0)
	r.ends("it", lifecycle.OutcomeRelease)
	if until := r.l.RestsUntil(); until.Before(before.Add(lane.PausedRest)) {
		t.Errorf("it rests until %v, expected %v from now on", until, lane.PausedRest)
	}
}

// Notifications of a paused queue, or during a lone task, are put back, and nothing is claimed for them.
func TestNotificationsThatAreNotForNowGoBack(t *testing.T) {
	for what, c := range map[string]struct {
		set      func(r *receivingWorker)
		suspects bool
	}{
		"suspects of a paused queue":  {func(r *receivingWorker) { r.l.Control.Paused.Store(true) }, true},
		"suspects beside a lone task": {func(r *receivingWorker) { r.fetcher.Suspects.Lone = &lane.Claim{} }, true},
		"tasks of a paused queue":     {func(r *receivingWorker) { r.l.Control.Paused.Store(true) }, false},
		"tasks beside a lone task":    {func(r *receivingWorker) { r.fetcher.Suspects.Lone = &lane.Claim{} }, false},
	} {
		r := newReceivingWorker(t, nil)
		list := ""
		if c.suspects {
			r.b.setAside(r.f, "suspect")
			list = "_suspects"
		} else {
			r.b.delay(r.f, "fresh")
			r.b.Do("LPOP", r.b.Name+"_noti")
		}
		c.set(r)
		r.fetcher.HandleWake(t.Context(), fetch.WakeUp{Held: 1, Suspects: c.suspects})
		if n, noti := r.b.Size("_processing:"+r.ID()), r.b.Size(list+"_noti"); n != 0 || noti != 1 {
			t.Errorf("%s: %d tasks claimed, %d notifications, expected 0 and 1", what, n, noti)
		}
	}
}

// The fetcher looks for suspects of each queue.
func TestSuspectsOfAnyQueueAreFound(t *testing.T) {
	r := newReceivingWorker(t, func(cfg *WorkerConfig) {
		own, _ := cfg.Queues.(Strict)
		cfg.Queues = Strict{own[0] + "-other", own[0]}
	})
	r.b.setAside(r.f, "suspect")
	r.fetcher.FindSuspects(t.Context())
	if r.lanes[0].HasSuspects || !r.lanes[1].HasSuspects {
		t.Errorf("suspects found: %v on the first queue, %v on the second, which has one", r.lanes[0].HasSuspects,
			r.lanes[1].HasSuspects)
	}
}

// Parked tasks take room from those that are pending.
func TestParkedTasksTakeRoom(t *testing.T) {
	r := newReceivingWorker(t, nil)
	for range 3 {
		r.b.delay(r.f, "parked")
	}
	claims := r.claim(3)
	endings := make([]lane.Ending, len(claims))
	ids := make([]string, len(claims))
	for i, c := range claims {
		c.Msg, _ = c.Parse()
		endings[i] = r.runner.Park(c, state.ReasonUnknownFunction, time.Now())
		ids[i] = endings[i].ID
	}
	if left, _ := finisherOf(r.l).Flush(endings); len(left) > 0 {
		t.Fatalf("%d are not parked", len(left))
	}
	for range 5 {
		r.b.delay(r.f, "pending")
	}
	o := &idleOwner{}
	r.fetcher.Owner = o
	r.l.SetParked(ids)
	r.fetcher.Queues[0].HasTasks = true
	r.fetcher.Round(t.Context(), 4)
	if n := lane.InHand(r.lanes); n != 4 || len(r.exec.Ready) != 4 {
		t.Errorf("%d tasks in hand, expected 4", n)
	}
	if o.looks != 1 {
		t.Errorf("%d looks for more parked tasks, expected one", o.looks)
	}
}

// The ids of parked tasks are kept when a claim of them fails.
func TestParkedTasksAreKeptWhenTheirClaimFails(t *testing.T) {
	r := newReceivingWorker(t, nil)
	r.l.SetParked([]string{"a", "b"})
	r.b.Do("DEL", r.b.Name+"_worker:"+r.ID())
	if _, err := r.l.ClaimParked(t.Context(), 1); !errors.Is(err, redisstore.ErrNoHeartbeat) {
		t.Errorf("claim without a heartbeat: %v", err)
	}
	if !r.l.HasParked() {
		t.Error("the worker has forgotten what is parked for it")
	}
}
