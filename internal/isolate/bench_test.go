//go:build linux

package isolate

import (
	"context"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed/internal/loop"
)

// BenchmarkRun runs jobs that do nothing, one at a time, and reports the processor time of parent and child together.
func BenchmarkRun(b *testing.B) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	p := NewPool(Config{
		MaxJobs: 0, Idle: time.Minute, Ahead: 1, Cause: func(context.Context) byte { return 0 }, Output: io.Discard,
		Log: loop.NewJournal(log),
	})
	p.Start(true)
	run := func() {
		_, err := p.Run(b.Context(), []byte("echo x"), func([]byte) {}, func() Patience { return Patience{} })
		if err != nil {
			b.Fatal(err)
		}
	}
	run()
	before := processorTime(b)
	b.ResetTimer()
	for range b.N {
		run()
	}
	b.StopTimer()
	p.Close() // the children have ended, and count
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
}

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
