package redisstore

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

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

// TestPassingErrorsOfInspect separates a Redis that cannot answer yet, which Run asks again, from one that forbids what
// was asked.
func TestPassingErrorsOfInspect(t *testing.T) {
	for _, test := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("connection reset"), true},
		{redis.Error("LOADING Redis is loading the dataset in memory"), true},
		{fmt.Errorf("from the node: %w", redis.Error("LOADING Redis is loading the dataset in memory")), true},
		{redis.Error("BUSY Redis is busy running a script"), true},
		{redis.Error("MASTERDOWN Link with MASTER is down"), true},
		{redis.Error("CLUSTERDOWN The cluster is down"), true},
		{redis.Error("TRYAGAIN Multiple keys request during rehashing of slot"), true},
		{redis.Error("MOVED 1 127.0.0.1:7000"), true},
		{redis.Error("ASK 1 127.0.0.1:7000"), true},
		{redis.Error("NOAUTH Authentication required."), true},
		{redis.Error("NOPERM this user has no permissions to run the 'info' command"), false},
		{redis.Error("ERR unknown command 'EVAL'"), false},
	} {
		if got := passing(test.err); got != test.want {
			t.Errorf("passing(%v): expected %v, found %v", test.err, test.want, got)
		}
	}
}

// TestSettingsAreJudged compares the settings that servers report with the expected ones.
func TestSettingsAreJudged(t *testing.T) {
	sound := map[string]string{
		"redis_version": "7.2.4", "role": "master", "maxmemory_policy": "noeviction",
		"aof_enabled": "1",
	}
	for _, c := range []struct{ field, value, unfit, warning string }{
		{"redis_version", "6.2.0", "", ""},
		{"redis_version", "6.0.20", "version", ""},
		{"redis_version", "5.0", "version", ""},
		{"redis_version", "255.255.255", "", ""},
		{"redis_version", "unstable", "", ""},
		{"redis_version", "", "", "does not tell redis_version"},
		{"role", "slave", "replica", ""},
		{"role", "", "", "does not tell role"},
		{"maxmemory_policy", "", "", "does not tell maxmemory_policy"},
		{"maxmemory_policy", "allkeys-lfu", "eviction", ""},
		{"aof_enabled", "", "", "does not tell aof_enabled"},
		{"aof_enabled", "0", "", "no append-only file"},
	} {
		info := maps.Clone(sound)
		info[c.field] = c.value
		var f Findings
		f.check("a server", info)
		var unfit []string
		for _, u := range f.Unfit {
			unfit = append(unfit, u.Name)
		}
		if all := strings.Join(f.Warnings, "\n"); strings.Join(unfit, " ") != c.unfit ||
			(all == "") != (c.warning == "") || !strings.Contains(all, c.warning) {
			t.Errorf("%s %q: found %+v", c.field, c.value, f)
		}
	}
}
