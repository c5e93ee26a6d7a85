package inspect

import (
	"context"
	"errors"
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
)

// ScriptTimes is how long scripts have run within one Redis server since it started, or since CONFIG RESETSTAT: nothing
// else runs there meanwhile. Scripts of other programs are among them.
type ScriptTimes struct {
	Server string // its address
	Calls  int64
	Total  time.Duration // of all calls together
	// Quantiles maps a share of all calls, from 0 to 1, to how long these took at most, such as 0.99 to 1 ms. It has
	// those of Redis's setting latency-tracking-info-percentiles, and is nil before Redis 7.
	Quantiles map[float64]time.Duration
}

// ScriptTimes asks the Redis server, in a cluster each of its masters, how long scripts have run in it. It takes two
// calls of INFO for each.
func (ins *Inspector) ScriptTimes(ctx context.Context) ([]ScriptTimes, error) {
	if err := ins.check(ctx); err != nil {
		return nil, err
	}
	servers, err := redisstore.Servers(ctx, ins.src, ins.prefix, ins.where)
	if err != nil {
		return nil, err
	}
	all := make([]ScriptTimes, 0, len(servers))
	var errs []error
	for _, server := range servers {
		t, err := redisstore.ReadScriptTimes(ctx, ins.src, server)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		one := ScriptTimes{Server: server.Address(), Calls: t.Calls, Total: t.Total}
		for percent, took := range t.Quantiles {
			if one.Quantiles == nil {
				one.Quantiles = map[float64]time.Duration{}
			}
			one.Quantiles[percent/100] = took
		}
		all = append(all, one)
	}
	return all, errors.Join(errs...)
}
