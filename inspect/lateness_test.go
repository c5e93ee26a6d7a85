package inspect_test

import (
	"testing"
	"time"

	"github.com/godelayed/delayed"
)

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
