package engine

import (
	"context"
	"time"

	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// maxUnconfirmed bounds the lists of samples that a lane keeps until the next heartbeat.
const maxUnconfirmed = 100

// publishMetrics adds the counts of all lanes to Redis.
func (h *heartbeat) publishMetrics(ctx context.Context) {
	for _, l := range h.lanes {
		if err := publishMetrics(ctx, h.exec, l); err != nil && ctx.Err() == nil {
			h.log.With("queue", l.store.Name).WithError(err).Debug("cannot add to the metrics of the queue")
		}
	}
}

// publishLastMetrics adds the counts that no heartbeat has added. Redis has just answered, so this rarely waits.
func publishLastMetrics(e *executors, lanes []*lane, log loop.Journal) {
	ctx, cancel := context.WithTimeout(context.Background(), redisstore.CallTimeout) // for all queues together
	defer cancel()
	for _, l := range lanes {
		if err := publishMetrics(ctx, e, l); err != nil {
			log.With("queue", l.store.Name).WithError(err).Debug("cannot add to the metrics of the queue")
			if !redisstore.IsWrongType(err) {
				return
			}
		}
	}
}

// publishMetrics adds a lane's counts to the metrics in Redis. Counts whose reply was lost may have arrived, so they
// are dropped; the others are sent again with the next heartbeat. Nothing depends on metrics.
func publishMetrics(ctx context.Context, e *executors, l *lane) error {
	lists := l.unconfirmed
	if seconds := e.takeTally(l); len(seconds) > 0 {
		lists = append(lists, metricsOf(seconds)...)
	}
	l.unconfirmed = nil
	for i, parts := range lists {
		rest, err := l.store.AddMetrics(ctx, parts)
		if err == nil {
			continue
		}
		lists = lists[i+1:]
		if len(rest) > 0 {
			lists = append([][]redisstore.MetricsPart{rest}, lists...)
		}
		l.unconfirmed = lists[max(0, len(lists)-maxUnconfirmed):]
		return err
	}
	return nil
}

// metricsOf returns samples of all grains, in one list for each hash in Redis.
func metricsOf(seconds []talliedSecond) [][]redisstore.MetricsPart {
	var lists [][]redisstore.MetricsPart
	for g := redisstore.GrainSecond; g <= redisstore.GrainTotal; g++ {
		places := map[int64]map[string]int{} // by time and function: position in list
		list, hash := []redisstore.MetricsPart(nil), int64(-1)
		for _, s := range seconds {
			at, in := g.Truncate(time.Unix(s.at, 0))
			if in != hash && len(list) > 0 {
				lists, list, places = append(lists, list), nil, map[int64]map[string]int{}
			}
			hash = in
			if places[at.Unix()] == nil {
				places[at.Unix()] = map[string]int{}
			}
			for fn, sample := range s.fns {
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
