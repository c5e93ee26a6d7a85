package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// ScriptTimes is how long the scripts of a server have run in it, those of other programs included.
type ScriptTimes struct {
	Calls int64
	Total time.Duration
	// Quantiles are shares of all calls, in percent, with how long these took at most; nil if the server does not
	// measure them.
	Quantiles map[float64]time.Duration
}

// ReadScriptTimes asks a server. What it does not tell is zero.
func ReadScriptTimes(ctx context.Context, src Source, server Server) (t ScriptTimes, err error) {
	conn, err := Connect(ctx, src, server.Key)
	if err != nil {
		return t, ConnError(err)
	}
	defer conn.Close()
	for _, section := range []string{"commandstats", "latencystats"} {
		text, err := redis.String(do(ctx, conn, CallTimeout, "INFO", section))
		if err != nil {
			return t, fmt.Errorf("delayed: INFO %s: %w", section, err)
		}
		t.read(parseServerInfo(text))
	}
	return t, nil
}

// read takes over a section: cmdstat_evalsha:calls=2,usec=9,... and
// latency_percentiles_usec_evalsha:p50=1.003,p99=2.007.
func (t *ScriptTimes) read(info map[string]string) {
	for _, command := range []string{"eval", "evalsha"} {
		for field := range strings.SplitSeq(info["cmdstat_"+command], ",") {
			name, value, _ := strings.Cut(field, "=")
			n, err := strconv.ParseInt(value, 10, 64)
			switch {
			case err != nil:
			case name == "calls":
				t.Calls += n
			case name == "usec":
				t.Total += time.Duration(min(n, maxSum)) * time.Microsecond
			}
		}
	}
	for field := range strings.SplitSeq(info["latency_percentiles_usec_evalsha"], ",") {
		name, value, _ := strings.Cut(field, "=")
		percent, err1 := strconv.ParseFloat(strings.TrimPrefix(name, "p"), 64)
		us, err2 := strconv.ParseFloat(value, 64)
		if err1 != nil || err2 != nil || !strings.HasPrefix(name, "p") {
			continue
		}
		if t.Quantiles == nil {
			t.Quantiles = map[float64]time.Duration{}
		}
		t.Quantiles[percent] = time.Duration(us * float64(time.Microsecond))
	}
}
