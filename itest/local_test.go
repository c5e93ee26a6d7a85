//go:build unix

package itest_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// localWorker is a worker in the process of the test.
type localWorker struct {
	*delayed.Worker
	out  *redistest.Log
	stop func()
}

// runWorker runs a worker until the end of the test, or until stop is called. If the test fails, it shows the worker's
// log.
func runWorker(t *testing.T, rdb *delayed.Store, cfg delayed.WorkerConfig, fns ...any) *localWorker {
	t.Helper()
	return runHeardWorker(t, rdb, cfg, func(delayed.Event) {}, fns...)
}

// runHeardWorker is runWorker for a worker whose events go to hear.
func runHeardWorker(
	t *testing.T, rdb *delayed.Store, cfg delayed.WorkerConfig, hear func(delayed.Event), fns ...any,
) *localWorker {
	t.Helper()
	out := new(redistest.Log)
	log := logrus.New()
	log.SetOutput(out)
	cfg.Logger = log
	w, err := delayed.NewWorker(rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Register(fns...), w.OnEvent(hear)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Worker.Run: %v", err)
		}
		if t.Failed() {
			text := out.String()
			t.Logf("log of worker %s:\n%s", w.ID(), text[max(0, len(text)-4000):])
		}
	})
	t.Cleanup(stop)
	return &localWorker{w, out, stop}
}
