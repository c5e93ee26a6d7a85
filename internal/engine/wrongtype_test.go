package engine

import (
	"strings"
	"testing"

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
	t.Cleanup(h.link.HangUp)
	r.b.Do("DEL", r.b.Name+"_worker:"+r.ID())
	r.b.Must(h.beat(t.Context()))
	return r, r.b.Name + ".other"
}

// TestStopBesideRefusedEnds: where Redis refuses to be told how tasks of one queue ended, the worker unregisters from
// the others all the same.
func TestStopBesideRefusedEnds(t *testing.T) {
	r, other := newWorkerOfTwo(t)
	r.b.delay(r.f, "x")
	f := finisherOf(r.l)
	f.release(r.claim(1))
	r.b.Do("SET", r.b.Name+"_processing:"+r.ID(), "of another program")
	if _, ok := f.tellRedis(); ok || f.unanswered() {
		t.Fatalf("Redis was told, or did not answer, expected that it refuses")
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

// TestStopWithoutRedis: a worker does not try to unregister from a Redis that could not be told how tasks ended.
func TestStopWithoutRedis(t *testing.T) {
	r, _ := newWorkerOfTwo(t)
	r.b.delay(r.f, "x")
	f := finisherOf(r.l)
	f.release(r.claim(1))
	r.b.Must(r.b.rdb.Close())
	if _, ok := f.tellRedis(); ok || !f.unanswered() {
		t.Fatalf("Redis was told, or has answered")
	}
	if err := r.unregister(); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("unregister returned %v, expected one error, of the task", err)
	}
}

// TestTellBesideAKeyOfAnotherType: what others may know of a worker is told on its other queues, by heartbeats and at
// the end.
func TestTellBesideAKeyOfAnotherType(t *testing.T) {
	r, other := newWorkerOfTwo(t)
	h := r.slotGroups[0].heartbeat
	r.b.Do("DEL", r.b.Name+"_functions", other+"_functions")
	r.b.Do("SET", r.b.Name+"_functions", "of another program")
	clear(h.published)
	clear(h.statuses)
	r.b.Must(h.beat(t.Context()))
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
		l.untold = [][]redisstore.MetricsPart{{part}}
	}
	r.b.Do("SET", r.b.Name+"_metrics:total", "of another program")
	r.tellAtTheEnd()
	if r.b.Int("EXISTS", other+"_metrics:total") != 1 {
		t.Error("the other queue has not been told what its tasks have done")
	}
}
