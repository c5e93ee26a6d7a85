//go:build linux

package isolate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/limits"
)

// TestJobOutlivesAChildThatHasNotReadIt: a child that ends before it has read a job costs the job nothing.
func TestJobOutlivesAChildThatHasNotReadIt(t *testing.T) {
	p := newPool(t, nil)
	run(t, p, "pid")
	p.mu.Lock()
	c := p.idle[0]
	p.mu.Unlock()
	pid := c.cmd.Process.Pid
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil { // so that it reads nothing
		t.Fatal(err)
	}
	until(t, "it has stopped", func() bool { // each of its threads: one that has not could still read
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
		for _, file := range threads {
			status, err := os.ReadFile(file)
			if err != nil || !strings.Contains(string(status), "State:\tT") {
				return false
			}
		}
		return err == nil && len(threads) > 0
	})
	var verdict []byte
	var err error
	over := make(chan struct{})
	go func() {
		defer close(over)
		verdict, err = p.Run(t.Context(), []byte("pid"), func([]byte) {}, grace)
	}()
	until(t, "the job is in the pipe", func() bool { return unread(c.jobs) })
	_ = syscall.Kill(pid, syscall.SIGKILL)
	<-over
	if other, _ := strconv.Atoi(string(verdict)); err != nil || other == 0 || other == pid {
		t.Errorf("ran in process %q, %v; process %d was killed before it had read the job", verdict, err, pid)
	}
}

// TestContextEndsBeforeTheJobIsRead: the order may be there before the job, and the job learns of it all the same.
func TestContextEndsBeforeTheJobIsRead(t *testing.T) {
	p := newPool(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	run(t, p, "pid")
	patient := func() Patience { return Patience{Grace: 5 * time.Second} }
	for range 200 {
		verdict, err := p.Run(ctx, []byte("wait"), func([]byte) {}, patient)
		if err != nil || string(verdict) != "canceled" {
			t.Fatalf("%q, %v", verdict, err)
		}
	}
}

// TestSignalsOfOthers: a service manager that sends signals to all processes of a service ends no job.
func TestSignalsOfOthers(t *testing.T) {
	p := newPool(t, nil)
	pid := run(t, p, "pid")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	// Often, because a child that obeys the signal ends only after the job has gone on.
	for _, job := range slices.Repeat([]string{"signals", "pid"}, 30) {
		verdict, err := p.Run(ctx, []byte(job), func([]byte) {}, grace)
		if want := map[string]string{"signals": "goes on", "pid": pid}[job]; err != nil || string(verdict) != want {
			t.Fatalf("%s: found %q, %v; expected %q", job, verdict, err, want)
		}
	}
}

// TestChildThatWasToldToEnd gets no other job: it may be about to end.
func TestChildThatWasToldToEnd(t *testing.T) {
	p := newPool(t, nil)
	pid := run(t, p, "pid")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	verdict, err := p.Run(ctx, []byte("stubborn"), func([]byte) { cancel() }, grace)
	if err != nil || string(verdict) != "told" {
		t.Fatalf("%q, %v", verdict, err)
	}
	if again := run(t, p, "pid"); again == pid {
		t.Error("the next job ran in it")
	}
}

// TestChildOfAJobThatHasGivenUp is there for the next one.
func TestChildOfAJobThatHasGivenUp(t *testing.T) {
	p := newPool(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := p.Run(ctx, []byte("echo"), func([]byte) {}, func() Patience { return Patience{} }); err == nil {
		t.Fatalf("%q, expected that the job does not wait for its child", got)
	}
	until(t, "the child waits", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.idle) == 1
	})
}

// TestContextEndsWhileAChildStarts: a job may wait for the child all the same, and runs there.
func TestContextEndsWhileAChildStarts(t *testing.T) {
	p := newPool(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	patient := func() Patience { return Patience{Start: time.Minute, Grace: time.Minute} }
	if got, err := p.Run(ctx, []byte("echo late"), func([]byte) {}, patient); err != nil || string(got) != "late" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestSetUpThatHangs delays neither the end of a job's context nor that of the pool.
func TestSetUpThatHangs(t *testing.T) {
	t.Setenv("ISOLATE_TEST_FAILS", "hangs")
	p := newPool(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := p.Run(ctx, []byte("echo"), func([]byte) {}, grace)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("found %v", err)
	}
	p.Close()
	if took := time.Since(start); took > startLimit/2 {
		limits.Errorf(t, "it took %v", took)
	}
}

// TestInvitationOfOthers: a program that inherits the environment variable by mistake says so.
func TestInvitationOfOthers(t *testing.T) {
	for _, text := range []string{"1", invitation{Version: invitationVersion}.String()} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), envChild+"="+text)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "the environment variable "+envChild) {
			t.Errorf("with %s: %v\n%s", text, err, out)
		}
	}
}
