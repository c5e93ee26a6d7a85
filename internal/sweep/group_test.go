package sweep

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// TestLoneSweeperKeepsContact pings between two passes, so that it knows of a break between them, and makes no pass
// before its time.
func TestLoneSweeperKeepsContact(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBenchOn(t, server)
	calls := func(command string) int {
		stats, err := redis.String(b.Conn.Do("INFO", "commandstats"))
		b.Must(err)
		found := regexp.MustCompile(`cmdstat_` + command + `:calls=(\d+)`).FindStringSubmatch(stats)
		if found == nil {
			return 0
		}
		n, err := strconv.Atoi(found[1])
		b.Must(err)
		return n
	}
	g := NewGroup(b.config(4 * time.Second))
	g.cfg.Interval = time.Hour // longer than the life, which is the longest interval
	before := calls("ping")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { g.Run(ctx); close(ended) }()
	b.Until("it has pinged", func() bool { return calls("ping") >= before+2 })
	cancel()
	redistest.Await(b.Bench, "the end of Run", ended)
	if g.passes != 1 {
		t.Errorf("%d passes in less than a life, expected one", g.passes)
	}
}

// TestSweeperLooksWhenAHeartbeatEnds: the sweeper looks again when the first of the heartbeats would expire.
func TestSweeperLooksWhenAHeartbeatEnds(t *testing.T) {
	b := newBench(t)
	for i, life := range []int{40_000, 20_000, 60_000} {
		id := wire.NewWorkerID()
		b.Do("SADD", b.Name+"_workers", id)
		b.Do("SET", fmt.Sprint(b.Name, "_worker:", id), i, "PX", life)
	}
	g := b.group(time.Minute, time.Hour)
	g.next = time.Hour
	b.pass(g)
	if g.next > 20*time.Second+expiryMargin || g.next < 10*time.Second {
		t.Errorf("looks again after %v, expected 20 s", g.next)
	}
}

// TestSweeperBesideAKeyOfAnotherType: whichever key of one queue is of another type, the sweeper gives back the tasks
// of dead workers of another queue, and goes on complaining of the key.
func TestSweeperBesideAKeyOfAnotherType(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"_workers", "", "_noti", "_processing", "_processing:dead", "_archived", "_locks"} {
		b, bad := newBench(t), newBench(t)
		b.Do("SET", bad.Name+suffix, "another type")
		if suffix == "_processing:dead" {
			b.Do("SADD", bad.Name+"_workers", "dead")
		}
		b.deadWorker("message")
		cfg := b.config(time.Minute)
		cfg.Stores = []*redisstore.Store{bad.store, b.store}
		g := NewGroup(cfg)
		g.confirmAfter = time.Millisecond
		t.Cleanup(g.link.HangUp)
		ctx := t.Context()
		b.Until("the task is given back beside a key "+suffix, func() bool {
			if err := g.pass(ctx, time.Second); err != nil && !redisstore.IsWrongType(err) {
				t.Fatal(err)
			}
			return b.Size("") == 1 && b.Size("_workers") == 0
		})
		// The sweeper still complains, unless it cares for this key only now and then, or not at all.
		if err := g.pass(ctx, time.Second); err == nil && suffix != "_archived" && suffix != "_locks" {
			t.Errorf("no complaint of a key %s of another type", suffix)
		}
	}
}

// TestSweeperFindsAllThatDiedTogether: one pass gives back the tasks of several dead workers, including legacy ones.
func TestSweeperFindsAllThatDiedTogether(t *testing.T) {
	b := newBench(t)
	const n = 3
	for i := range n {
		b.deadWorker(fmt.Sprint("m", i))
		b.Do("HSET", b.Name+"_processing", fmt.Sprint("gone", i), fmt.Sprint("legacy", i))
	}
	g := b.group(time.Minute, time.Hour)
	g.confirmAfter = 0
	b.pass(g)
	if b.Size("") != 2*n || b.Size("_workers") != 0 || b.Size("_processing") != 0 {
		t.Errorf("one pass has left %d of %d workers, and %d legacy claims", b.Size("_workers"), n,
			b.Size("_processing"))
	}
	b.Check(redistest.Invariants{})
}

// TestSweepAll does at once what passes do over time: for all workers, and for more expired things than one script
// handles.
func TestSweepAll(t *testing.T) {
	b := newBench(t)
	const most = 3*redisstore.TrimPage + 1
	seed := redistest.State{
		"_parked": redistest.Zset{}, "_archived": redistest.Zset{}, "_completed": redistest.Zset{},
		"_revoked": redistest.Zset{}, "_tasks": redistest.Hash{},
		"_info":    redistest.Hash{},
		"_results": redistest.Hash{}, "_locks": redistest.Hash{},
	}
	parked := wire.Info{Function: "f", Error: "expected more fields"}
	for i := range most {
		at := int64(1000 + i)
		for set, hash := range map[string]string{
			"_parked": "_tasks", "_archived": "_tasks", "_completed": "_results",
		} {
			id := fmt.Sprint(set, i)
			seed[set].(redistest.Zset)[id] = at   //nolint:errcheck // as above
			seed[hash].(redistest.Hash)[id] = "m" //nolint:errcheck // as above
		}
		infos := seed["_info"].(redistest.Hash) //nolint:errcheck // as above
		infos[fmt.Sprint("_parked", i)] = string(parked.Encode())
		seed["_locks"].(redistest.Hash)[fmt.Sprint("k:", i)] = fmt.Sprint(at, " x") //nolint:errcheck // as above
	}
	for i := range 3*redisstore.PardonPage + 1 {
		seed["_revoked"].(redistest.Zset)[fmt.Sprint(i)] = int64(1000 + i) //nolint:errcheck // as above
	}
	redistest.Seed(t, b.Conn, b.Name, seed)
	b.deadWorker("m0")
	b.deadWorker("m1")
	b.Must(b.group(time.Minute, time.Hour).SweepAll(t.Context()))
	for key, want := range map[string]int{
		"": 2, "_workers": 0, "_parked": 0, "_archived": most, "_completed": 0, "_results": 0, "_locks": 0,
		"_revoked": 0, "_tasks": most, "_info": most,
	} {
		if n := b.Size(key); n != want {
			t.Errorf("%q has %d elements, expected %d", key, n, want)
		}
	}
	// Those in the archive now were parked for too long; the older ones were deleted.
	info := wire.ParseInfo([]byte(b.Hash("_info")[fmt.Sprint("_parked", most-1)]))
	if info.Reason != state.ReasonParkedTooLong || info.Function != "f" || info.Error != parked.Error {
		t.Errorf("found %+v", info)
	}
	b.Check(redistest.Invariants{})
}

// TestArchivedForItsDeaths: the log and the info say why, with everything that a person needs to know.
func TestArchivedForItsDeaths(t *testing.T) {
	b := newBench(t)
	culprit := extended("culprit", 1)
	culprit.Meta.Deaths, culprit.Meta.DiedAt = lifecycle.MaxDeaths+1, time.Now().UnixMilli()
	culprit.Meta.Extra = &wire.Extra{AloneDeaths: lifecycle.MaxDeaths - 1}
	worker := b.deadWorker(text(culprit))
	b.Do("HSET", b.Name+"_claims:"+worker, redisstore.MarkAlone, "1-1")
	b.sweptDry(b.group(time.Millisecond, time.Hour))
	info := wire.ParseInfo([]byte(b.Hash("_info")["culprit"]))
	if info.Worker != worker || info.Reason != state.ReasonDeaths || info.Function != "a.f" ||
		info.Deaths != lifecycle.MaxDeaths+2 || !strings.Contains(info.Error, "3 times its worker died") ||
		time.Since(info.At).Abs() > time.Minute {
		t.Errorf("found %+v", info)
	}
}
