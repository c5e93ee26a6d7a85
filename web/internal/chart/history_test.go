package chart

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/metrics"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
)

// fixture is a queue "mail", alone on its server, in which one handler of a function has returned in each minute of
// the last hour.
type fixture struct {
	*redistest.Bench
	rdb   *delayed.Store
	ins   *inspect.Inspector
	store *redisstore.Store
	now   time.Time
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	server := redistest.Start(t)
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	src, _, _, err := redisstore.DialSources(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	h := &fixture{rdb: rdb, Bench: redistest.NewBench(t, server), store: redisstore.NewStore(src, "", "mail")}
	h.ins, err = inspect.New(rdb, inspect.Config{})
	h.Must(err)
	h.now = time.UnixMilli(redistest.Time(t, h.Conn))
	for i := range 59 {
		h.add(h.now.Add(-time.Duration(i)*time.Minute), 1)
	}
	return h
}

// add has some handlers return at a time.
func (h *fixture) add(at time.Time, runs uint64) {
	h.T.Helper()
	h.addGrain(redisstore.GrainSecond, at, runs)
}

func (h *fixture) addGrain(g redisstore.Grain, at time.Time, runs uint64) {
	h.T.Helper()
	at, _ = g.Truncate(at)
	_, err := h.store.AddMetrics(h.T.Context(), []redisstore.MetricsPart{{
		Grain: g, At: at, Function: "app/mail.Welcome",
		Sample: metrics.Sample{Runs: runs, Failed: runs / 2},
	}})
	h.Must(err)
}

// get returns what p knows.
func (h *fixture) get(p *History) *Flow {
	h.T.Helper()
	f, err := p.Get(h.T.Context(), h.ins, []string{"mail"}, h.now)
	h.Must(err)
	return f
}

// TestHistoryFillsUp has no time to read: each call goes on where the one before it has stopped, the latest time first.
func TestHistoryFillsUp(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	p := &History{span: &hourSpan, life: time.Hour, budget: 0}
	f := h.get(p)
	for calls := 1; !f.Complete(); calls++ {
		first := slices.Index(f.known, true)
		for i := range f.known {
			if f.known[i] != (i >= first) {
				t.Fatalf("call %d: known are %v", calls, f.known)
			}
		}
		if calls > 30 {
			t.Fatalf("after %d calls it is not complete: %v", calls, f.known)
		}
		before := first
		f = h.get(p)
		if slices.Index(f.known, true) >= before {
			t.Fatalf("call %d: it has read nothing", calls)
		}
	}
	sum := f.Sum()
	if sum.Runs != 59 {
		t.Errorf("%d runs, expected 59", sum.Runs)
	}
	spark := f.RunsOf(60)["mail"]
	for i, n := range spark[1:] {
		if n != 1 {
			t.Errorf("minute %d has %v runs, expected 1: %v", i+1, n, spark)
		}
	}
}

// TestHistoryReadsOnce reads only times again that workers may still add to.
func TestHistoryReadsOnce(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	p := &History{span: &hourSpan, budget: time.Hour}
	if f := h.get(p); !f.Complete() {
		t.Errorf("found %+v", f)
	}
	before := redistest.CommandStatsOn(t, h.Conn)
	h.add(h.now, 10)
	h.add(h.now.Add(-30*time.Minute), 100) // too late: nobody looks
	f := h.get(p)
	sum := f.Sum()
	if sum.Runs != 69 {
		t.Errorf("%d runs, expected 69", sum.Runs)
	}
	if n := redistest.CommandStatsOn(t, h.Conn).Since(before)["hgetall"]; n < 2 || n > 5 {
		t.Errorf("it has read %d minutes, expected those of the last two, and the present one", n)
	}
	p.life = time.Hour
	before = redistest.CommandStatsOn(t, h.Conn)
	h.get(p)
	if n := redistest.CommandStatsOn(t, h.Conn).Since(before)["hgetall"]; n != 0 {
		t.Errorf("it has read %d minutes, and what it knew was young enough", n)
	}
}

// TestHistoryMovesOn forgets what is older than the span.
func TestHistoryMovesOn(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	p := &History{span: &hourSpan, budget: time.Hour}
	h.get(p)
	h.now = h.now.Add(30 * time.Minute)
	f := h.get(p)
	sum := f.Sum()
	if n := len(p.buckets); sum.Runs < 29 || sum.Runs > 31 || n > 122 {
		t.Errorf("half an hour later there are %d runs in %d buckets", sum.Runs, n)
	}
}

func TestEachStopsAtErrors(t *testing.T) {
	t.Parallel()
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprint(i)
	}
	no := errors.New("no")
	done := make(chan string, len(names))
	err := each(t.Context(), names, func(_ context.Context, name string) error {
		done <- name
		if name == "5" {
			return no
		}
		return nil
	})
	if !errors.Is(err, no) || len(done) < 6 || len(done) == len(names) {
		t.Errorf("%d of %d were done: %v", len(done), len(names), err)
	}
	if err := each(t.Context(), nil, nil); err != nil {
		t.Error(err)
	}
}
