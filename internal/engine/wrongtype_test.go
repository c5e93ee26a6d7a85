package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/engine/beat"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/metrics"
	"github.com/godelayed/delayed/internal/redisstore"
)

// newWorkerOfTwo returns a worker that is registered on the queue of its bench, where keys will be of another type, and
// on another one, whose name it returns.
func newWorkerOfTwo(t *testing.T) (r *receivingWorker, other string) {
	t.Helper()
	r = newReceivingWorker(t, func(cfg *WorkerConfig) {
		own, _ := cfg.Queues.(Strict)
		cfg.Queues = Strict{own[0], own[0] + ".other"}
	})
	h := r.slotGroups[0].heartbeat
	t.Cleanup(h.Link.HangUp)
	r.b.Do("DEL", r.b.Name+"_worker:"+r.ID())
	r.b.Must(h.Beat(t.Context()))
	return r, r.b.Name + ".other"
}

// TestRefusedQueueKeepsNoPlaces: ready tasks of a queue on which Redis refuses to register the worker go back, or they
// would keep the executors' places from other queues. Nothing may be claimed there.
func TestRefusedQueueKeepsNoPlaces(t *testing.T) {
	r, _ := newWorkerOfTwo(t)
	for range 3 {
		r.b.delay(r.f, "x")
	}
	r.took("before", 3, 3, 3)
	r.b.Do("DEL", r.b.Name+"_workers", r.b.Name+"_worker:"+r.ID())
	r.b.Do("SET", r.b.Name+"_workers", "of another program")
	if err := r.slotGroups[0].heartbeat.Beat(t.Context()); !redisstore.IsWrongType(err) {
		t.Fatalf("the heartbeat returned %v, expected that a key is of another type", err)
	}
	if n := len(r.exec.Ready); n != 0 || r.l.Fresh(quietLife) || !r.lanes[1].Fresh(quietLife) {
		t.Errorf("%d tasks are ready, fresh: %v and %v, expected none, and that only the other queue is", n,
			r.l.Fresh(quietLife), r.lanes[1].Fresh(quietLife))
	}
	if _, ok := finisherOf(r.l).Publish(); !ok || r.b.Size("") != 3 {
		t.Errorf("%d tasks are pending, expected all three", r.b.Size(""))
	}
	r.b.Do("DEL", r.b.Name+"_workers")
}

// TestUnknownClaimsBesideAKeyOfAnotherType: claims of other queues whose replies were lost are given back.
func TestUnknownClaimsBesideAKeyOfAnotherType(t *testing.T) {
	for _, key := range []string{"_control", "_processing:"} {
		r, other := newWorkerOfTwo(t)
		if key == "_processing:" {
			key += r.ID()
		}
		r.b.Do("SET", r.b.Name+key, "of another program")
		r.b.Do("HSET", other+"_processing:"+r.ID(), "1-1", "message")
		r.b.Do("HSET", other+"_control", "version", "7")
		r.lanes[1].LastBatch, r.lanes[1].ReplyLostAt = 1, time.Now()
		loop.Drain(r.lanes[1].Control.Poked)
		r.b.Must(r.slotGroups[0].heartbeat.Beat(t.Context()))
		if n := r.b.Int("LLEN", other); n != 1 || len(r.lanes[1].Control.Poked) != 1 {
			t.Errorf("beside %s: %d tasks are pending, expected the one that nobody knew of; "+
				"news of the control hash: %d, expected 1", key, n, len(r.lanes[1].Control.Poked))
		}
		r.b.Do("DEL", r.b.Name+key, other, other+"_noti", other+"_control")
	}
}

// TestRefusedEndsAreNotInHand: otherwise no suspect of another queue would ever be alone.
func TestRefusedEndsAreNotInHand(t *testing.T) {
	r, _ := newWorkerOfTwo(t)
	for range 3 {
		r.b.delay(r.f, "x")
	}
	f := finisherOf(r.l)
	claims := r.claim(3)
	f.Release(claims[:2])
	if n := lane.InHand(r.lanes); n != 3 {
		t.Errorf("%d claims are in hand, expected 3", n)
	}
	r.b.Do("RENAME", r.b.Name+"_claims:"+r.ID(), r.b.Name+"_hidden")
	r.b.Do("SET", r.b.Name+"_claims:"+r.ID(), "of another program")
	if _, ok := f.Publish(); ok || lane.InHand(r.lanes) != 1 {
		t.Errorf("confirmed by Redis: %v; %d claims are in hand, expected 1", ok, lane.InHand(r.lanes))
	}
	r.b.Do("RENAME", r.b.Name+"_hidden", r.b.Name+"_claims:"+r.ID())
	if _, ok := f.Publish(); !ok || lane.InHand(r.lanes) != 1 {
		t.Errorf("confirmed by Redis: %v; %d claims are in hand, expected 1", ok, lane.InHand(r.lanes))
	}
	lane.GiveBack(claims[2:])
	f.Publish()
}

// TestProbeBesideAKeyOfAnotherType: the worker does not claim from each empty queue beside one of which it knows
// nothing.
func TestProbeBesideAKeyOfAnotherType(t *testing.T) {
	r, _ := newWorkerOfTwo(t)
	r.b.Do("SET", r.b.Name+"_scheduled", "of another program")
	r.fetcher.Probe(t.Context())
	if has := r.fetcher.Queues; !has[0].HasTasks || has[1].HasTasks {
		t.Errorf("claims from the queues: %+v, expected from the first one only", has)
	}
	r.b.Do("DEL", r.b.Name+"_scheduled")
}

// TestStopBesideRefusedEnds: where Redis refuses the calls that end tasks of one queue, the worker unregisters from
// the others all the same.
func TestStopBesideRefusedEnds(t *testing.T) {
	r, other := newWorkerOfTwo(t)
	r.b.delay(r.f, "x")
	f := finisherOf(r.l)
	f.Release(r.claim(1))
	r.b.Do("SET", r.b.Name+"_processing:"+r.ID(), "of another program")
	if _, ok := f.Publish(); ok || !f.Lane.EndingsRefused.Load() {
		t.Fatalf("Redis confirmed, or did not answer, expected that it refuses")
	}
	if err := r.unregister(); err == nil || !strings.Contains(err.Error(), "not confirmed how 1 tasks ended") {
		t.Errorf("unregister returned %v, expected that Redis has not confirmed the end of one task", err)
	}
	left, gone := r.b.Int("SCARD", r.b.Name+"_workers"), r.b.Int("SCARD", other+"_workers")
	if left != 1 || gone != 0 {
		t.Errorf("%d and %d workers are registered, expected one on the queue whose task has not ended", left, gone)
	}
	r.b.Do("DEL", r.b.Name+"_processing:"+r.ID())
}

// TestStopWithoutRedis: a worker does not try to unregister from a Redis that has not confirmed how tasks ended.
func TestStopWithoutRedis(t *testing.T) {
	r, _ := newWorkerOfTwo(t)
	r.b.delay(r.f, "x")
	f := finisherOf(r.l)
	f.Release(r.claim(1))
	r.b.Must(r.b.rdb.Close())
	if _, ok := f.Publish(); ok || f.Lane.EndingsRefused.Load() {
		t.Fatalf("Redis confirmed, or has answered")
	}
	if err := r.unregister(); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("unregister returned %v, expected one error, of the task", err)
	}
}

// TestPublishBesideAKeyOfAnotherType: what others may know of a worker is published on its other queues, by heartbeats
// and at the end.
func TestPublishBesideAKeyOfAnotherType(t *testing.T) {
	r, other := newWorkerOfTwo(t)
	h := r.slotGroups[0].heartbeat
	r.b.Do("DEL", r.b.Name+"_functions", other+"_functions")
	r.b.Do("SET", r.b.Name+"_functions", "of another program")
	clear(h.Published)
	clear(h.Statuses)
	r.b.Must(h.Beat(t.Context()))
	for _, field := range []string{r.ID(), r.ID() + " status"} {
		if r.b.Int("HEXISTS", other+"_functions", field) != 1 {
			t.Errorf("the other queue lacks the field %q", field)
		}
	}
	if strings.Contains(r.b.log.String(), "functions of this worker published") {
		t.Error("the log says that the functions are published, although one queue lacks them")
	}
	part := redisstore.MetricsPart{Grain: redisstore.GrainTotal, Sample: metrics.Sample{Runs: 1}}
	for _, l := range r.lanes {
		l.UnsentMetrics = [][]redisstore.MetricsPart{{part}}
	}
	r.b.Do("SET", r.b.Name+"_metrics:total", "of another program")
	beat.PublishLastMetrics(r.exec, r.lanes, r.log)
	if r.b.Int("EXISTS", other+"_metrics:total") != 1 {
		t.Error("the other queue lacks the metrics of its tasks")
	}
}
