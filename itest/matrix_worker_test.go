//go:build unix

package itest_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/childproc"
	"github.com/godelayed/delayed/itest/ledger"
	"github.com/godelayed/delayed/itest/procs"
)

const (
	// matrixConcurrency is how many tasks a worker runs at once; keakon's run one.
	matrixConcurrency = 2
	// matrixLife is how long a killed worker counts as alive; keakon's package counts in seconds.
	matrixLife = 2 * time.Second
)

// matrixSetup configures a Go worker.
type matrixSetup struct {
	URL, Queue, Ledger string
	Legacy             bool
}

var matrixRole = procs.Define("worker of the matrix", func(ctx context.Context, s matrixSetup) error {
	w, err := ledger.Create(s.Ledger)
	if err != nil {
		return err
	}
	rdb, err := delayed.Dial(s.URL)
	if err != nil {
		return err
	}
	log := logrus.New()
	log.SetOutput(os.Stderr)
	worker, err := delayed.NewWorker(sharing(rdb, s.Legacy), delayed.WorkerConfig{
		Queues: delayed.Strict{s.Queue}, Concurrency: matrixConcurrency, HeartbeatLife: matrixLife,
		SweepInterval: matrixLife / 4,
		Backoff:       func(int) time.Duration { return 20 * time.Millisecond }, Logger: log,
	})
	if err != nil {
		return err
	}
	f := &matrixFunctions{ledger: w, dir: s.Ledger, failed: map[string]int{}}
	for name, fn := range map[string]any{
		"touch": f.touch, "record": f.record, "fail_times": f.failTimes, "total": total, "broken": f.broken,
		"hang_once": f.hangOnce,
	} {
		if err := worker.Register(delayed.Func(fn, delayed.Name("matrix."+name))); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stderr, "ready "+worker.ID())
	return worker.Run(ctx)
})

// matrixFunctions are the same functions that matrix_tasks.py has for Python.
type matrixFunctions struct {
	ledger *ledger.Writer
	dir    string

	mu     sync.Mutex
	failed map[string]int
}

func (f *matrixFunctions) note(kind ledger.Kind, task, detail string) {
	f.ledger.Write(ledger.Event{Kind: kind, Task: task, Worker: strconv.Itoa(os.Getpid()), Detail: detail})
}

func (f *matrixFunctions) touch(ctx context.Context, name string, millis int) error {
	f.note(ledger.Start, name, "")
	work := time.NewTimer(time.Duration(millis) * time.Millisecond)
	defer work.Stop()
	select {
	case <-work.C:
		f.note(ledger.End, name, "")
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (f *matrixFunctions) call(name string, args ...any) {
	if args == nil {
		args = []any{}
	}
	raw, err := json.Marshal(map[string]any{"args": asText(args), "kwargs": map[string]any{}})
	if err != nil {
		panic(err)
	}
	f.note("call", name, string(raw))
}

// asText writes bytes as matrix_tasks.py does.
func asText(v any) any {
	switch v := v.(type) {
	case []byte:
		return map[string]string{"bytes": hex.EncodeToString(v)}
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = asText(v[i])
		}
		return list
	case map[string]any:
		m := map[string]any{}
		for key := range v {
			m[key] = asText(v[key])
		}
		return m
	}
	return v
}

func (f *matrixFunctions) record(args ...any) { f.call("record", args...) }

var errAgain = errors.New("not yet")

func (f *matrixFunctions) failTimes(key string, n int) error {
	f.mu.Lock()
	f.failed[key]++
	seen := f.failed[key]
	f.mu.Unlock()
	f.call("fail_times", key, seen)
	if seen <= n {
		return errAgain
	}
	return nil
}

func total(a, b int) int { return a + b }

func (f *matrixFunctions) broken() error {
	f.call("broken")
	return errors.New("broken as it should be")
}

func (f *matrixFunctions) hangOnce(ctx context.Context, name string) error {
	f.note(ledger.Start, name, "")
	file, err := os.OpenFile(filepath.Join(f.dir, name), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		f.note(ledger.End, name, "")
		return nil //nolint:nilerr // it has been here
	}
	file.Close()
	<-ctx.Done()
	return context.Cause(ctx)
}

// matrixWorker is the worker of a pair.
type matrixWorker struct {
	pair    *pair
	process *childproc.Process
	sweeper *childproc.Process // keakon's sweeper, which is a program of its own
}

// startMatrixWorker starts a worker and waits until Redis knows it.
func startMatrixWorker(t *testing.T, p *pair) *matrixWorker {
	t.Helper()
	w := &matrixWorker{pair: p}
	life := strconv.Itoa(int(matrixLife.Seconds()))
	switch p.worker {
	case goParty:
		w.process = matrixRole.Start(t, matrixSetup{p.server.URL(), p.queue, string(p.ledger), p.plain()})
		waitFor(t, "the worker to be ready", func() bool { return strings.Contains(w.process.Output(), "ready") })
	case pythonParty:
		args := []string{
			"--url", p.server.URL(), "--queue", p.queue, "--life", life, "--concurrency",
			strconv.Itoa(matrixConcurrency),
		}
		if p.plain() {
			args = append(args, "--legacy")
		}
		w.process = startPython(t, p.ledger.env(), "matrix_worker.py", args...)
	case keakonParty:
		w.process = startPython(t, p.ledger.env(), "worker.py", "--url", p.server.URL(), "--queue", p.queue,
			"--keep-alive-timeout", life,
			"--keep-alive-interval", "0.2", "--max-sleep", "0.05")
		w.sweeper = startPython(t, nil, "sweeper.py", "--url", p.server.URL(), "--queue", p.queue,
			"--keep-alive-timeout", life, "--interval", "0.2")
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("worker: %s", w.process.Output())
		}
	})
	return w
}

// kill ends the worker like a machine that fails.
func (w *matrixWorker) kill(t *testing.T) {
	t.Helper()
	w.process.Kill()
	if w.sweeper != nil {
		stopPython(t, w.sweeper)
	}
}

// stop stops the worker in its regular way.
func (w *matrixWorker) stop(t *testing.T) {
	t.Helper()
	if err := w.process.Stop(time.Minute); err != nil {
		t.Errorf("%v\n%s", err, w.process.Output())
	}
	if w.sweeper != nil {
		stopPython(t, w.sweeper)
	}
}
