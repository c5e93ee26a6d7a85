package inspect_test

import (
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
