package engine

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/engine/beat"
	"github.com/godelayed/delayed/internal/engine/exec"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/metrics"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

// tallied sums up what was counted of a function.
func tallied(seconds []exec.TalliedSecond, path string) (sum metrics.Sample) {
	for _, s := range seconds {
		for fn, sample := range s.Fns {
			if fn.Path() == path {
				sum.Merge(sample)
			}
		}
	}
	return sum
}

func TestTally(t *testing.T) {
	f, g := newFunction(t, "f", func() {}), newFunction(t, "g", func() {})
	start := time.UnixMilli(1_700_000_000_500)
	var ty exec.Tally
	add := func(c *lane.Claim) {
		c.Started = start
		ty.Add(c, 200*time.Millisecond, time.Second)
	}
	add(&lane.Claim{Fn: f, Ran: true})
	add(&lane.Claim{Fn: f}) // its claim was lost
	add(&lane.Claim{Fn: f, Ran: true, Outcome: lifecycle.OutcomeRetry, Msg: wire.Message{Meta: wire.Meta{
		EnqueuedAt: start.UnixMilli() - 60_000, Extra: &wire.Extra{Due: start.UnixMilli() + 600},
	}}})
	add(&lane.Claim{Fn: g, Ran: true, Outcome: lifecycle.OutcomeArchive})
	add(&lane.Claim{Fn: f, Ran: true, Outcome: lifecycle.OutcomeSnooze, Msg: wire.Message{Meta: wire.Meta{
		EnqueuedAt: start.UnixMilli() - 1000,
	}}})
	start = start.Add(900 * time.Millisecond) // it ends in the next second
	add(&lane.Claim{Fn: f, Ran: true, Outcome: lifecycle.OutcomeCancel})
	seconds := ty.Take()
	if len(seconds) != 2 || seconds[0].At != 1_700_000_001 || seconds[1].At != 1_700_000_002 {
		t.Errorf("found %+v, expected two seconds", seconds)
	}
	if s := tallied(seconds, "f"); s.Runs != 3 || s.Failed != 1 || s.Archived != 0 || s.Run.Count() != 3 ||
		s.Run.Sum != 600*time.Millisecond || s.Wait.Count() != 1 || s.Wait.Sum != 400*time.Millisecond {
		t.Errorf("f: %d runs, %d failed, %d archived; %v in %d runs, %v in %d waits", s.Runs, s.Failed, s.Archived,
			s.Run.Sum, s.Run.Count(), s.Wait.Sum, s.Wait.Count())
	}
	if s := tallied(seconds, "g"); s.Runs != 1 || s.Failed != 1 || s.Archived != 1 || s.Wait.Count() != 0 {
		t.Errorf("g: %+v", s)
	}
	if again := ty.Take(); len(again) > 0 {
		t.Errorf("taken twice: %+v", again)
	}
	for range exec.MaxTallied + 10 { // while Redis is away
		start = start.Add(time.Second)
		add(&lane.Claim{Fn: f, Ran: true})
	}
	if seconds = ty.Take(); len(seconds) != exec.MaxTallied || tallied(seconds, "f").Runs != exec.MaxTallied+10 {
		t.Errorf("%d seconds with %d runs, expected %d with %d", len(seconds), tallied(seconds, "f").Runs,
			exec.MaxTallied, exec.MaxTallied+10)
	}
}

// A task that follows another one of the same function counts in the second in which it has ended itself.
func TestTallyKeepsSecondsApart(t *testing.T) {
	f := newFunction(t, "f", func() {})
	var ty exec.Tally
	for _, second := range []int64{5, 5, 6, 8, 8, 8} {
		ty.Add(&lane.Claim{Fn: f, Ran: true, Started: time.Unix(second, 0)}, time.Millisecond, 0)
	}
	runs := map[int64]uint64{}
	for _, s := range ty.Take() {
		for _, sample := range s.Fns {
			runs[s.At] += sample.Runs
		}
	}
	if expected := map[int64]uint64{5: 2, 6: 1, 8: 3}; !maps.Equal(runs, expected) {
		t.Errorf("found %v runs by second, expected %v", runs, expected)
	}
}

// The samples of all grains have all that was counted, in one list for each hash.
func TestMetricsOfATally(t *testing.T) {
	f, g := newFunction(t, "f", func() {}), newFunction(t, "g", func() {})
	var ty exec.Tally
	const first = 1_700_006_397 // 3 seconds before midnight in UTC, of Unix day 19675
	for i := range 6 {
		for _, fn := range []*Function{f, g, f} {
			c := lane.Claim{Fn: fn, Ran: true, Started: time.Unix(int64(first+i), 0)}
			ty.Add(&c, time.Millisecond, 0)
		}
	}
	type place struct {
		grain redisstore.Grain
		hash  int64
	}
	runs, seen := map[redisstore.Grain]uint64{}, map[place]bool{}
	for _, list := range beat.MetricsOf(ty.Take()) {
		var at place
		for i, p := range list {
			_, hash := p.Grain.Truncate(p.At)
			if here := (place{p.Grain, hash}); i > 0 && here != at {
				t.Errorf("one list is of %+v and of %+v", at, here)
			} else if at = here; i == 0 && seen[at] {
				t.Errorf("two lists are of %+v", at)
			}
			seen[at] = true
			runs[p.Grain] += p.Sample.Runs
		}
	}
	for grain := redisstore.GrainSecond; grain <= redisstore.GrainTotal; grain++ {
		if runs[grain] != 18 {
			t.Errorf("grain %d has %d runs, expected 18", grain, runs[grain])
		}
	}
	if len(seen) != 7 { // two of each that ends at midnight, and the sum of all times
		t.Errorf("%d hashes, expected 7: %v", len(seen), seen)
	}
}

// A worker that stops publishes the counts that its last heartbeat did not.
func TestWorkerTellsItsTallyAtTheEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	f := b.fn("f", func() {})
	cfg := b.config()
	cfg.HeartbeatLife = time.Hour
	s := b.work(cfg, f)
	for range 5 {
		b.delay(f)
	}
	b.Until("all have run", func() bool { return b.counters()["processed"] == 5 })
	s.mustStop()
	store := redisstore.NewStore(b.rdb.loops, "", b.Name)
	parts, _, err := store.Metrics(t.Context(), redisstore.GrainTotal, time.Time{})
	b.Must(err)
	if len(parts) != 1 || parts[0].Sample.Runs != 5 {
		t.Errorf("found %+v, expected 5 runs", parts)
	}
}

// What was certainly not written is written by the next heartbeat, in all grains.
func TestTallyThatRedisHasNotGot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var failed atomic.Int64
	src := redistest.Intercept(b.rdb.loops, func(cmd string, args []any, send func() (any, error)) (any, error) {
		if cmd == "HMGET" && strings.Contains(fmt.Sprint(args[0]), "_metrics:s") && failed.Add(1) == 1 {
			return nil, errors.New("connection reset by peer")
		}
		return send()
	})
	rdb := *b.rdb
	rdb.loops = src
	f := b.fn("f", func() {})
	cfg := b.config()
	cfg.HeartbeatLife = 5 * time.Second
	s := b.workWith(&rdb, cfg, f)
	for range 5 {
		b.delay(f)
	}
	b.Until("all have run", func() bool { return b.counters()["processed"] == 5 })
	store := redisstore.NewStore(b.rdb.loops, "", b.Name)
	for _, g := range []redisstore.Grain{redisstore.GrainSecond, redisstore.GrainTotal} {
		b.Until(fmt.Sprintf("grain %d has the runs that one heartbeat has failed to write", g), func() bool {
			return b.runs(store, g) == 5 && failed.Load() > 1
		})
	}
	s.mustStop()
}

// runs returns how many runs of the last minutes Redis knows in a grain.
func (b *bench) runs(store *redisstore.Store, g redisstore.Grain) (runs uint64) {
	now, err := store.Time(b.T.Context())
	b.Must(err)
	for from := now.Add(-10 * time.Minute); !from.After(now); {
		parts, next, err := store.Metrics(b.T.Context(), g, from)
		b.Must(err)
		for i := range parts {
			runs += parts[i].Sample.Runs
		}
		if g == redisstore.GrainTotal {
			break
		}
		from = next
	}
	return runs
}

// A heartbeat writes what the one before could not. Which part Redis has got when an answer is lost is unknown: it is
// not written again.
func TestTallyIsToldByTheNextHeartbeat(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var asked atomic.Int64
	src := redistest.Intercept(b.rdb.loops, func(cmd string, args []any, send func() (any, error)) (any, error) {
		if cmd == "EVALSHA" && args[0] == redisstore.Scripts["metrics"].Sha && asked.Add(1) == 1 {
			return nil, errors.New("connection reset by peer")
		}
		return send()
	})
	rdb := *b.rdb
	rdb.loops = src
	f := b.fn("f", func() {})
	cfg := b.config()
	cfg.HeartbeatLife = 5 * time.Second
	s := b.workWith(&rdb, cfg, f)
	for range 5 {
		b.delay(f)
	}
	store := redisstore.NewStore(b.rdb.loops, "", b.Name)
	b.Until("all are written", func() bool {
		parts, _, err := store.Metrics(t.Context(), redisstore.GrainTotal, time.Time{})
		b.Must(err)
		return len(parts) == 1 && parts[0].Sample.Runs == 5
	})
	s.mustStop()
}
