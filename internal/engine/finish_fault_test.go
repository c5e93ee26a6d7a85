package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/engine/exec"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// Endings whose call got no answer come before newer ones, and are sent again unchanged.
func TestEndingsWithoutAnswerComeFirst(t *testing.T) {
	var meanwhile func()
	r := newReceivingWorker(t, func(cfg *WorkerConfig) {
		cfg.Logger = onLog(func() {
			if meanwhile != nil {
				meanwhile()
			}
		}).logger()
	})
	f := finisherOf(r.l)
	for _, s := range []string{"first", "second", "third"} {
		r.b.delay(r.f, s)
	}
	claims := r.claim(3)
	meanwhile = func() { // the worker logs that Redis fails
		meanwhile = nil
		f.Add(lane.Ending{Claim: claims[2], Outcome: lifecycle.OutcomeRelease})
	}
	f.Release(claims[:2])
	r.b.Do("RENAME", r.b.Name+"_claims:"+r.ID(), r.b.Name+"_hidden")
	r.b.Do("SET", r.b.Name+"_claims:"+r.ID(), "of another type")
	if worked, ok := f.Publish(); !worked || ok {
		t.Fatalf("work: %v, %v, expected that Redis refuses", worked, ok)
	}
	var order []*lane.Claim
	for _, e := range f.Pending {
		order = append(order, e.Claim)
	}
	if !slices.Equal(order, claims) {
		t.Errorf("%d endings are left, expected three in the order in which they came", len(order))
	}
	if n := claims[0].Batch.Unsent; n != 3 {
		t.Errorf("the batch lacks %d answers, expected 3: it would be forgotten too early, or never", n)
	}
	r.b.Do("RENAME", r.b.Name+"_hidden", r.b.Name+"_claims:"+r.ID())
	if _, ok := f.Publish(); !ok || r.b.Size("_processing:"+r.ID()) != 0 || r.b.Size("_claims:"+r.ID()) != 0 {
		t.Errorf("Redis did not confirm: %v", r.b.Hash("_claims:"+r.ID()))
	}
}

// Lost claims are counted once Redis can be reached.
func TestLostClaimsAreCountedLater(t *testing.T) {
	r := newReceivingWorker(t, nil)
	finisherOf(r.l).AddLost(3)
	r.b.Must(r.b.rdb.Close())
	if _, ok := finisherOf(r.l).Publish(); ok || finisherOf(r.l).Lost != 3 {
		t.Errorf("%d claims are to be counted after a call that failed, expected 3", finisherOf(r.l).Lost)
	}
}

// Tasks that are given back in several calls keep their order.
func TestReleasedTasksKeepTheirOrder(t *testing.T) {
	r := newReceivingWorker(t, nil)
	calls := make([]*Task, redisstore.MaxTokens+3)
	for i := range calls {
		calls[i] = Call(r.f, "x")
	}
	if _, err := r.b.q.DelayMany(t.Context(), calls...); err != nil {
		t.Fatal(err)
	}
	before := r.b.List("")
	lane.GiveBack(r.claim(len(calls)))
	if _, ok := finisherOf(r.l).Publish(); !ok {
		t.Fatal("Redis did not confirm")
	}
	if after := r.b.List(""); !slices.Equal(after, before) {
		t.Errorf("%d tasks are pending in another order than the %d before", len(after), len(before))
	}
}

// Tasks that are handed on in several calls keep their order: no call overtakes another.
func TestForwardedTasksKeepTheirOrder(t *testing.T) {
	r := newReceivingWorker(t, nil)
	f := finisherOf(r.l)
	f.Python = redisstore.NewStore(r.b.rdb.loops, "", r.b.Name+"-py")
	tasks := make([]*Task, redisstore.MaxTokens+3)
	for i := range tasks {
		tasks[i] = Call(r.f, "x")
	}
	if _, err := r.b.q.DelayMany(t.Context(), tasks...); err != nil {
		t.Fatal(err)
	}
	before := r.b.List("")
	release := calls(redisstore.Scripts["release"])
	rdb, _ := r.b.delayedBy(100*time.Millisecond, faultnet.Once(faultnet.DelayRequest, release))
	for _, c := range r.claim(len(tasks)) {
		f.Add(lane.Ending{Claim: c, Outcome: lifecycle.OutcomeForward})
	}
	r.l.Store.Src = rdb.loops
	if _, ok := f.Publish(); !ok {
		t.Fatal("Redis did not confirm")
	}
	after, err := redis.Strings(r.b.Do("LRANGE", r.b.Name+"-py", 0, -1), nil)
	if err != nil || !slices.Equal(after, before) {
		t.Errorf("%d tasks were handed on in another order than the %d before", len(after), len(before))
	}
}

// A worker that waits for the end of a pause looks at the control hash with each heartbeat.
func TestHeartbeatLooksWhileSomethingIsIntended(t *testing.T) {
	r := newReceivingWorker(t, nil)
	h := r.slotGroups[0].heartbeat
	beat := func(what string, want bool) {
		t.Helper()
		loop.Drain(r.l.Control.Poked)
		r.b.Must(h.Beat(t.Context()))
		if got := signalled(r.l.Control.Poked); got != want {
			t.Errorf("%s: the worker looks at the control hash: %v, expected %v", what, got, want)
		}
	}
	beat("the first", true)
	r.l.Control.Version.Store(0)
	r.b.Do("HSET", r.b.Name+"_control", "version", 7)
	beat("nothing is intended", false)
	r.l.Control.ReadOften.Store(true)
	beat("a pause", true)
}

// Listeners learn that a heartbeat is lost when it may have expired, not before.
func TestHeartbeatIsLostWhenItMayHaveExpired(t *testing.T) {
	r := newReceivingWorker(t, nil)
	h := r.slotGroups[0].heartbeat
	h.CheckExpired(redisstore.ErrClosed)
	if h.ReportedLost[r.l] {
		t.Error("a fresh heartbeat is reported as lost")
	}
	old := time.Now().Add(-time.Hour)
	r.l.Confirmed.Store(&old)
	h.CheckExpired(redisstore.ErrClosed)
	if !h.ReportedLost[r.l] {
		t.Error("an old heartbeat is not reported as lost")
	}
}

// A mover looks again when the first task of either set is due.
func TestMoverWaitsForTheFirstOfBothSets(t *testing.T) {
	for _, c := range []struct{ scheduled, retry time.Duration }{{time.Hour, time.Minute}, {time.Minute, time.Hour}} {
		r := newReceivingWorker(t, nil)
		for set, wait := range map[string]time.Duration{"_scheduled": c.scheduled, "_retry": c.retry} {
			r.b.Do("ZADD", r.b.Name+set, time.Now().Add(wait).UnixMilli(), "id"+set)
			r.b.Do("HSET", r.b.Name+"_tasks", "id"+set, "m")
		}
		if next, err := r.slotGroups[0].mover.Move(t.Context(), r.l.Store); err != nil ||
			next > time.Minute+time.Second ||
			next < 0 {
			t.Errorf("%+v: next in %v, %v, expected a minute", c, next, err)
		}
	}
}

// Tasks that are being claimed count against the number that may start, and resting executors are not free.
func TestRoomOfLimitedExecutors(t *testing.T) {
	inCrew(t, 2, -1, func(c *crew) {
		c.Limited, c.StartsLeft, c.Claiming = true, 3, 2
		if n := c.Allowed(5); n != 1 {
			t.Errorf("%d tasks may be claimed beside two that are coming, expected 1", n)
		}
		c.Limited, c.Claiming = false, 0
		busy := c.tasks(c.lane, 1)
		c.Add(busy)
		c.begun("one", busy...)
		c.Held, c.Resting = true, 1
		ahead := c.tasks(c.lane, 2)
		c.Add(ahead)
		<-time.After(exec.OverdueTime)
		c.expectRoom("one executor works and one rests", 0, exec.NoAheadTime, ahead...)
		c.Held, c.Resting = false, 0
	})
}

// The error of a worker that stops because of stuck handlers names those, and not long ones without a limit.
func TestLongHandlersAreNotNamedAsStuck(t *testing.T) {
	inWatched(t, 2, 0, func(w *watched) {
		long, stuck := w.limited(1, 0), w.limited(1, 2*exec.LongRun)
		long[0].Msg.Meta.ID, stuck[0].Msg.Meta.ID = "long", "stuck"
		w.Add(slices.Concat(long, stuck))
		w.begun("both", long[0], stuck[0])
		w.pass(exec.LongRun)
		w.dog.Check(time.Now())
		w.pass(exec.LongRun + time.Minute)
		w.dog.Check(time.Now())
		if w.dog.Fatal == nil || !slices.Equal(w.dog.Fatal.IDs, []string{"stuck"}) {
			t.Errorf("given up for %v", w.dog.Fatal)
		}
	})
}

// A claim that must end in another way, as Redis has answered, has not ended: its batch lasts until all of its claims
// have.
func TestEndingInAnotherWayEndsTheClaimOnce(t *testing.T) {
	r := newReceivingWorker(t, nil)
	for _, s := range []string{"first", "second"} {
		r.b.delay(r.f, s)
	}
	claims := r.claim(2)
	claims[0].Msg, _ = claims[0].Parse()
	finisherOf(r.l).Add(r.runner.Cancellation(claims[0], false)) // nobody has canceled it
	for worked, ok := finisherOf(r.l).Publish(); worked; worked, ok = finisherOf(r.l).Publish() {
		if !ok {
			t.Fatal("Redis did not confirm")
		}
	}
	if r.b.Size("") != 1 || r.b.Size("_processing:"+r.ID()) != 1 {
		t.Errorf("%d pending, %d claimed, expected one of each", r.b.Size(""), r.b.Size("_processing:"+r.ID()))
	}
	if n := r.b.Size("_claims:" + r.ID()); n != 1 || claims[1].Batch.Unsent != 1 {
		t.Errorf("%d batches are noted, %d claims of it are not confirmed, expected 1 and 1", n, claims[1].Batch.Unsent)
	}
}
