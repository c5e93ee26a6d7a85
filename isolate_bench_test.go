//go:build linux

package delayed_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/godelayed/delayed"
)

// BenchmarkIsolated drains tasks that do nothing, in the worker and in child processes, and tells the processor time of
// both together; and it runs one at a time, which tells what a call costs in time.
func BenchmarkIsolated(b *testing.B) {
	for _, bench := range []struct {
		name  string
		fn    *delayed.Function
		alone bool
	}{
		{"plain", plainNoop, false},
		{"isolated", isolatedNoop, false},
		{"plain-alone", plainNoop, true},
		{"isolated-alone", isolatedNoop, true},
	} {
		b.Run(bench.name, func(b *testing.B) {
			h := newBench(b)
			cfg := h.config()
			cfg.Concurrency = 2
			if bench.alone {
				cfg.Concurrency = 1
			}
			w, err := isolatedWorker(h.rdb, cfg)
			h.Must(err)
			h.Must(w.Register(plainNoop))
			s := h.start(w)
			h.delay(bench.fn)
			h.Until("it has run", func() bool { return h.counters()["processed"] == 1 }) // the first child has started
			h.Must(h.q.Pause(b.Context()))
			var calls []*delayed.Task
			for range b.N {
				calls = append(calls, delayed.Call(bench.fn))
			}
			if _, err := h.q.DelayMany(b.Context(), calls...); err != nil {
				b.Fatal(err)
			}
			before := processorTime(b)
			b.ResetTimer()
			h.Must(h.q.Resume(b.Context()))
			h.Until("all have run", func() bool { return h.counters()["processed"] == b.N+1 })
			b.StopTimer()
			s.mustStop() // the children have ended, and count
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

var (
	plainNoop    = delayed.Func(func() error { return nil }, delayed.Name("plain.noop"))
	isolatedNoop = delayed.Func(func() error { return nil }, delayed.Name("isolated.noop"), delayed.Isolated())
)

// processorTime returns how much processor time this process and its children that have ended have used.
func processorTime(b *testing.B) (used time.Duration) {
	b.Helper()
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		used += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return used
}
