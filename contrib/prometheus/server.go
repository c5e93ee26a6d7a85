package delayedprom

import (
	"context"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/godelayed/delayed/inspect"
)

// servers shows how long scripts have run within Redis. A user of Redis who may not call INFO goes without.
func (s *scrape) servers(ctx context.Context) {
	var times []inspect.ScriptTimes
	s.try(ctx, "times of scripts", func() (err error) {
		times, err = s.ins.ScriptTimes(ctx)
		if err != nil && strings.Contains(err.Error(), "NOPERM") {
			return nil
		}
		return err
	})
	for _, t := range times {
		quantiles := make(map[float64]float64, len(t.Quantiles))
		for share, took := range t.Quantiles {
			quantiles[share] = took.Seconds()
		}
		s.ch <- prometheus.MustNewConstSummary(s.d.scripts, uint64(max(t.Calls, 0)), t.Total.Seconds(), quantiles,
			t.Server)
	}
}
