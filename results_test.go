package delayed

import (
	"errors"
	"testing"
	"time"
)

func (b *bench) completed() int { return b.size("_completed") }

func TestWorkerKeepsResults(t *testing.T) {
	b := newBench(t)
	double := b.fn("double", func(n int) (int, error) {
		if n < 0 {
			return 0, errors.New("negative")
		}
		return 2 * n, nil
	})
	b.work(b.config(), double)
	b.delayWith(b.q.With(TaskID("a"), KeepResult(time.Hour)), double, 21)
	b.delayWith(b.q.With(TaskID("b"), Retention(time.Hour)), double, 1)
	b.delayWith(b.q.With(TaskID("c"), KeepResult(time.Hour), MaxRetry(0)), double, -1)
	b.delay(double, 3)
	b.until("all have ended", func() bool { return b.completed() == 2 && b.size("_archived") == 1 && b.counters()["processed"] == 4 })
	if n := b.size("_results"); n != 2 {
		t.Errorf("%d results are kept, expected 2", n)
	}
}
