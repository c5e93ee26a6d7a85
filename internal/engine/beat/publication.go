package beat

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/godelayed/delayed/internal/engine/exec"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// publish writes the worker's functions to queues where Redis does not have the present ones. No task depends on it;
// the next heartbeat tries again.
func (h *Heartbeat) publish(ctx context.Context) {
	if h.Functions == nil {
		return
	}
	listing, state := h.Functions.Listing()
	var failed error
	lanes, stores := lane.Where(h.lanes, func(l *lane.Lane) bool { return h.Published[l] != state })
	listings := slices.Repeat([][]byte{listing}, len(lanes))
	for i, a := range redisstore.PublishEach(ctx, stores, h.worker, listings) {
		err := a.Err
		if err != nil && ctx.Err() == nil {
			h.log.Trouble(&h.failing, "cannot publish the functions of this worker; trying again", err)
		}
		if err != nil && !redisstore.IsWrongType(err) {
			return
		}
		if a.Value {
			h.Published[lanes[i]] = state
		}
		failed = cmp.Or(failed, err)
	}
	if failed == nil {
		h.log.Relief(&h.failing, "functions of this worker published")
	}
}

// forgetPublished makes this beat publish anew what Redis has lost of a lane.
func (h *Heartbeat) forgetPublished(l *lane.Lane) {
	delete(h.Published, l)
	delete(h.Statuses, l)
}

// publishStatus writes what the worker does, where that is not what Redis has.
func (h *Heartbeat) publishStatus(ctx context.Context) {
	if h.Functions == nil {
		return
	}
	var lanes []*lane.Lane
	var stores []*redisstore.Store
	var statuses [][]byte
	now := time.Now()
	all := h.Status.ofWorker(now)
	for _, l := range h.lanes {
		if status := h.Status.ofLane(l, now, all); string(status) != h.Statuses[l] {
			lanes, stores, statuses = append(lanes, l), append(stores, l.Store), append(statuses, status)
		}
	}
	for i, a := range redisstore.PublishEach(ctx, stores, h.worker+redisstore.StatusMark, statuses) {
		if a.Value { // otherwise the next heartbeat tries again
			h.Statuses[lanes[i]] = string(statuses[i])
		}
	}
}

// maxUnconfirmed bounds the lists of samples that a lane keeps until the next heartbeat.
const maxUnconfirmed = 100

// publishMetrics adds the counts of all lanes to Redis.
func (h *Heartbeat) publishMetrics(ctx context.Context) {
	for _, l := range h.lanes {
		if err := publishMetrics(ctx, h.Exec, l); err != nil && ctx.Err() == nil {
			h.log.With("queue", l.Store.Name).WithError(err).Debug("cannot add to the metrics of the queue")
		}
	}
}

// PublishLastMetrics adds the counts that no heartbeat has added. Redis has just answered, so this rarely waits.
func PublishLastMetrics(e *exec.Executors, lanes []*lane.Lane, log loop.Journal) {
	ctx, cancel := context.WithTimeout(context.Background(), redisstore.CallTimeout) // for all queues together
	defer cancel()
	for _, l := range lanes {
		if err := publishMetrics(ctx, e, l); err != nil {
			log.With("queue", l.Store.Name).WithError(err).Debug("cannot add to the metrics of the queue")
			if !redisstore.IsWrongType(err) {
				return
			}
		}
	}
}

// publishMetrics adds a lane's counts to the metrics in Redis. Counts whose reply was lost may have arrived, so they
// are dropped; the others are sent again with the next heartbeat. Nothing depends on metrics.
func publishMetrics(ctx context.Context, e *exec.Executors, l *lane.Lane) error {
	lists := l.UnsentMetrics
	if seconds := e.TakeTally(l); len(seconds) > 0 {
		lists = append(lists, MetricsOf(seconds)...)
	}
	l.UnsentMetrics = nil
	for i, parts := range lists {
		rest, err := l.Store.AddMetrics(ctx, parts)
		if err == nil {
			continue
		}
		lists = lists[i+1:]
		if len(rest) > 0 {
			lists = append([][]redisstore.MetricsPart{rest}, lists...)
		}
		l.UnsentMetrics = lists[max(0, len(lists)-maxUnconfirmed):]
		return err
	}
	return nil
}

// MetricsOf returns samples of all grains, in one list for each hash in Redis.
func MetricsOf(seconds []exec.TalliedSecond) [][]redisstore.MetricsPart {
	var lists [][]redisstore.MetricsPart
	for g := redisstore.GrainSecond; g <= redisstore.GrainTotal; g++ {
		places := map[int64]map[string]int{} // by time and function: position in list
		list, hash := []redisstore.MetricsPart(nil), int64(-1)
		for _, s := range seconds {
			at, in := g.Truncate(time.Unix(s.At, 0))
			if in != hash && len(list) > 0 {
				lists, list, places = append(lists, list), nil, map[int64]map[string]int{}
			}
			hash = in
			if places[at.Unix()] == nil {
				places[at.Unix()] = map[string]int{}
			}
			for fn, sample := range s.Fns {
				i, known := places[at.Unix()][fn.Path()]
				if !known {
					i = len(list)
					places[at.Unix()][fn.Path()] = i
					list = append(list, redisstore.MetricsPart{Grain: g, At: at, Function: fn.Path()})
				}
				list[i].Sample.Merge(sample)
			}
		}
		lists = append(lists, list)
	}
	return lists
}
