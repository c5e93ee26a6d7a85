package inspect_test

import (
	"slices"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestMetrics has a worker run tasks, and finds them in the metrics of each grain.
func TestMetrics(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const slow = 30 * time.Millisecond
	sleeps := func() { <-time.After(slow) }
	waits := delayed.Func(sleeps, delayed.Name("sleeps"))
	_, err := b.q.Delay(welcome, 0, "en")
	b.Must(err)
	<-time.After(slow) // it waits for a worker
	begin := time.UnixMilli(redistest.Time(t, b.Conn))
	b.work(waits, welcome, fails)
	for range 3 {
		_, err := b.q.Delay(waits)
		b.Must(err)
	}
	_, err = b.q.Delay(fails, 1)
	b.Must(err)
	_, err = b.q.With(delayed.MaxRetry(0)).Delay(fails, 2)
	b.Must(err)
	sumOf := func(g inspect.Grain) map[string]inspect.Sample {
		sums := map[string]inspect.Sample{}
		samples, err := b.ins.Metrics(bg, queueName, g, time.Time{}, time.Time{})
		b.Must(err)
		for _, s := range samples {
			if at := begin.Sub(s.At); g != inspect.Total && at > map[inspect.Grain]time.Duration{
				inspect.Seconds: time.Second, inspect.Minutes: time.Minute, inspect.Days: 24 * time.Hour,
			}[g] {
				t.Errorf("%v: a sample of %v, before the first task", g, s.At)
			}
			sum := sums[s.Function]
			sum.Merge(&s)
			sums[s.Function] = sum
		}
		return sums
	}
	b.Until("Redis knows of all", func() bool {
		sums := sumOf(inspect.Seconds)
		return sums["sleeps"].Runs == 3 && sums[path("welcome")].Runs == 1 && sums[path("fails")].Runs == 2
	})
	for g := inspect.Seconds; g <= inspect.Total; g++ {
		b.Until("Redis knows of all", func() bool { return sumOf(g)[path("fails")].Runs == 2 })
		sums := sumOf(g)
		slept, failed, welcomed := sums["sleeps"], sums[path("fails")], sums[path("welcome")]
		if slept.Failed != 0 || failed.Failed != 2 || failed.Archived != 1 {
			t.Errorf("grain %v: %d, %d failed and %d archived, expected none, 2 and 1", g, slept.Failed, failed.Failed,
				failed.Archived)
		}
		if p := slept.Run.Quantile(0.5); slept.Run.Count() != 3 || p < slow*3/4 || slept.Run.Sum() < 3*slow ||
			slept.Run.Below(slow / 2)[0] != 0 {
			t.Errorf("grain %v: %d runs of %v in the median, %v in all, expected at least %v each", g,
				slept.Run.Count(), p, slept.Run.Sum(), slow)
		}
		wait := welcomed.Wait.Sum()
		if welcomed.Wait.Count() != 1 || wait < slow-time.Millisecond || wait > time.Minute {
			t.Errorf("grain %v: the first task has waited for %v, expected at least %v", g, wait, slow)
		}
	}
	samples, err := b.ins.Metrics(bg, queueName, inspect.Seconds, begin.Add(-time.Hour), begin.Add(-2*time.Second))
	if len(samples) > 0 || err != nil {
		t.Errorf("before the first task: %v, %v", samples, err)
	}
	if _, err := b.ins.Metrics(bg, queueName, inspect.Total+1, time.Time{}, time.Time{}); err == nil {
		t.Error("no such grain, and no error")
	}
	samples, err = b.ins.Metrics(bg, "nobody's", inspect.Total, time.Time{}, time.Time{})
	if len(samples) > 0 || err != nil {
		t.Errorf("a queue that nobody uses: %v, %v", samples, err)
	}
}

func TestSeriesOf(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int, function string, runs, failed uint64) inspect.Sample {
		when := from.Add(time.Duration(seconds) * time.Second)
		return inspect.Sample{At: when, Function: function, Runs: runs, Failed: failed}
	}
	s := inspect.SeriesOf([]inspect.Sample{
		at(-1, "a", 100, 0), at(0, "a", 1, 1), at(59, "b", 2, 0), at(60, "a", 4, 0), at(179, "a", 8, 2),
		at(180, "a", 100, 0),
	}, from, time.Minute, 3)
	a, b, sum := s.Functions["a"], s.Functions["b"], s.Sum()
	if len(s.Functions) != 2 || !slices.Equal(a.Runs, []uint64{1, 4, 8}) ||
		!slices.Equal(a.Failed, []uint64{1, 0, 2}) || !slices.Equal(b.Runs, []uint64{2, 0, 0}) ||
		a.Sum.Runs != 13 || b.Sum.Runs != 2 {
		t.Errorf("expected a with 1, 4, 8 runs and b with 2, 0, 0, found %+v and %+v", a, b)
	}
	if sum.Runs != 15 || sum.Failed != 3 || s.Buckets[0].Runs != 3 {
		t.Errorf("expected 15 runs, 3 failed, 3 runs at first, found %+v, %+v", sum, s.Buckets[0])
	}
}

// TestLateness: a task that comes due while a worker runs is moved soon, one that was due for an hour is late.
func TestLateness(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for range 2 {
		_, err := b.q.With(delayed.In(10*time.Millisecond)).Delay(welcome, 1, "en")
		b.Must(err)
	}
	ref, err := b.q.With(delayed.In(time.Hour)).Delay(welcome, 2, "en")
	b.Must(err)
	b.Do("ZINCRBY", b.Name+"_scheduled", -2*time.Hour.Milliseconds(), ref.ID())
	b.work(welcome)
	b.Until("all are moved", func() bool {
		h, err := b.ins.Lateness(bg, queueName)
		b.Must(err)
		return h.Count() == 3
	})
	h, err := b.ins.Lateness(bg, queueName)
	b.Must(err)
	below := h.Below(20*time.Minute, 3*time.Hour)
	if below[0] != 2 || below[1] != 3 || h.Sum() < time.Hour || h.Sum() > 2*time.Hour {
		t.Errorf("%v of all below 20 min and 3 h, %v together", below, h.Sum())
	}
	if h, err := b.ins.Lateness(bg, "nobody's"); err != nil || h.Count() != 0 {
		t.Errorf("%d of an unused queue, %v", h.Count(), err)
	}
	times, err := b.ins.ScriptTimes(bg)
	if err != nil || len(times) != 1 || times[0].Server == "" || times[0].Calls < 3 || times[0].Total <= 0 {
		t.Errorf("times of scripts: %+v, %v", times, err)
	}
	for share := range times[0].Quantiles {
		if share <= 0 || share > 1 {
			t.Errorf("a share of %v", share)
		}
	}
}
