package delayedtest_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// fakeT records what a test would report. Its cleanups run when it ends.
type fakeT struct {
	testing.TB
	ctx context.Context

	mu       sync.Mutex
	problems []string
	cleanups []func()
}

func (f *fakeT) Helper()                  {}
func (f *fakeT) Context() context.Context { return f.ctx }
func (f *fakeT) Output() io.Writer        { return io.Discard }
func (f *fakeT) Cleanup(do func())        { f.cleanups = append(f.cleanups, do) }
func (f *fakeT) Fatal(args ...any)        { f.fail(fmt.Sprint(args...)); runtime.Goexit() }
func (f *fakeT) FailNow()                 { f.fail("FailNow"); runtime.Goexit() }

func (f *fakeT) Fatalf(format string, args ...any) {
	f.fail(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (f *fakeT) Errorf(format string, args ...any) { f.fail(fmt.Sprintf(format, args...)) }

func (f *fakeT) fail(problem string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.problems = append(f.problems, problem)
}

// try runs what a test would do and returns what it reported, "" if it passed.
func try(t *testing.T, test func(t testing.TB)) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &fakeT{TB: t, ctx: ctx}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(f)
	}()
	<-done
	cancel()
	for _, cleanup := range slices.Backward(f.cleanups) {
		cleanup()
	}
	return strings.Join(f.problems, "\n")
}

// fails checks that a test fails with a message that has all the given parts.
func fails(t *testing.T, test func(t testing.TB), parts ...string) {
	t.Helper()
	problem := try(t, test)
	if problem == "" {
		t.Errorf("expected a failure that says %q", parts)
	}
	for _, part := range parts {
		if problem != "" && !strings.Contains(problem, part) {
			t.Errorf("expected a failure that says %q, found:\n%s", part, problem)
		}
	}
}

// passes checks that a test does not fail.
func passes(t *testing.T, test func(t testing.TB)) {
	t.Helper()
	if problem := try(t, test); problem != "" {
		t.Errorf("expected no failure, found:\n%s", problem)
	}
}
