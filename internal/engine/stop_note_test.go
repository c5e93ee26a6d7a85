package engine

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/state"
)

// Also when Redis does not answer at the moment of the stop, it learns that the worker stops in good order.
func TestStopIsNotedOnceRedisAnswers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	rdb, dialer := b.faulty(faultnet.Once(faultnet.DropRequest, func(request []byte) bool {
		return bytes.Contains(request, []byte("\r\n"+redisstore.MarkStopped+"\r\n"))
	}))
	entered, leave := make(chan string, 10), make(chan struct{})
	f := b.fn("f", func(s string) { entered <- s; <-leave })
	cfg := b.config()
	cfg.Grace, cfg.CancelGrace = time.Millisecond, time.Millisecond
	w, err := NewWorker(rdb, cfg)
	b.Must(err)
	b.Must(w.Register([]*Function{f}, nil))
	ctx, stop := context.WithCancel(t.Context())
	b.delay(f, "stubborn")
	go func() { <-entered; stop() }()
	var still *lane.RunningError
	if err := w.Run(ctx); !errors.As(err, &still) {
		t.Fatalf("expected that a handler still runs, found %v", err)
	}
	b.Until("the stop is noted", func() bool { return b.Hash("_claims:" + w.ID())[redisstore.MarkStopped] == "1" })
	if dropped(dialer) != 1 {
		t.Error("no call was dropped")
	}
	close(leave)
	b.Until("nothing of the worker is left", func() bool {
		return b.Size("_claims:"+w.ID()) == 0 && b.Size("_workers") == 0
	})
}

// Redis learns that a worker stops in good order whatever makes it stop; only stuck handlers are an exception.
func TestStopIsNotedWhateverTheReason(t *testing.T) {
	t.Parallel()
	for _, reason := range []state.Reason{
		state.StopContext, state.StopMaxTasks, state.StopMaxTime, state.StopMaxMemory, state.StopEmpty,
		state.StopRestart, state.StopOrder, state.StopSettings,
	} {
		t.Run(string(reason), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			entered, leave := make(chan string, 10), make(chan struct{})
			f := b.fn("f", func(s string) { entered <- s; <-leave })
			cfg := b.config()
			cfg.Grace, cfg.CancelGrace = time.Millisecond, time.Millisecond
			w, err := NewWorker(b.rdb, cfg)
			b.Must(err)
			b.Must(w.Register([]*Function{f}, nil))
			b.delay(f, "stubborn")
			ended := make(chan error, 1)
			go func() { ended <- w.Run(t.Context()) }()
			await(b, "the task", entered)
			w.StopFor(reason)
			var still *lane.RunningError
			if err := await(b, "the end of the worker", ended); !errors.As(err, &still) {
				t.Errorf("expected that a handler still runs, found %v", err)
			}
			b.Until("the stop is noted", func() bool {
				return b.Hash("_claims:" + w.ID())[redisstore.MarkStopped] == "1"
			})
			close(leave)
			b.Until("nothing of the worker is left", func() bool { return b.Size("_workers") == 0 })
		})
	}
}
