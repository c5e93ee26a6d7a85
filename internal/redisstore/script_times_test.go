package redisstore

import (
	"maps"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/redistest"
)

func TestScriptTimes(t *testing.T) {
	server := redistest.Start(t) // nobody else's scripts
	src := dialled(t, server.URL())
	where := Server{Key: "q", Name: "Redis at x:1"}
	before, err := ReadScriptTimes(bg, src, where)
	if err != nil || before.Calls != 0 || before.Total != 0 || where.Address() != "x:1" {
		t.Fatalf("%+v before any script, %v", before, err)
	}
	s := NewStore(src, "", "q")
	for range 20 {
		if _, _, _, err := s.Move(bg, ShelfRetry, 10); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadScriptTimes(bg, src, where)
	// The first call was EVALSHA, which failed, and EVAL.
	if err != nil || got.Calls != 21 || got.Total < 20*time.Microsecond || got.Total > time.Minute {
		t.Errorf("%+v after 20 scripts, %v", got, err)
	}
	for percent, took := range got.Quantiles {
		if percent <= 0 || percent > 100 || took <= 0 || took > time.Minute {
			t.Errorf("%v %% of all calls took %v", percent, took)
		}
	}
}

func TestScriptTimesOfOddServers(t *testing.T) {
	const text = "cmdstat_evalsha:calls=3,usec=9000,usec_per_call=3000.00\r\ncmdstat_eval:calls=1,usec=5\r\n" +
		"latency_percentiles_usec_evalsha:p50=1.5,p99.9=2000,x=1,p=,py=1\r\n"
	var got, empty ScriptTimes
	got.read(parseServerInfo(text))
	want := map[float64]time.Duration{50: 1500 * time.Nanosecond, 99.9: 2 * time.Millisecond}
	if got.Calls != 4 || got.Total != 9005*time.Microsecond || !maps.Equal(got.Quantiles, want) {
		t.Errorf("found %+v", got)
	}
	empty.read(parseServerInfo("cmdstat_evalsha:calls=,usec\r\ncmdstat_eval\r\nx"))
	if empty.Calls != 0 || empty.Total != 0 || empty.Quantiles != nil {
		t.Errorf("of nothing: %+v", empty)
	}
}
