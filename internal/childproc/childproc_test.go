//go:build unix

package childproc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary run as a parent that is killed.
func TestMain(m *testing.M) {
	if os.Getenv("CHILDPROC_TEST_PARENT") != "" {
		p, err := Start(exec.Command("sleep", "60"))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(p.PID())
		select {}
	}
	os.Exit(m.Run())
}

func start(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start(exec.Command("sh", "-c", script))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// await polls until ok holds.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	late := time.After(10 * time.Second)
	for !ok() {
		select {
		case <-late:
			t.Fatalf("waited 10 s for: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

func TestExitAndOutput(t *testing.T) {
	p := start(t, "echo out; echo err >&2; exit 3")
	if code := p.ExitCode(); code != 3 {
		t.Errorf("exit code %d, expected 3", code)
	}
	if out := p.Output(); out != "out\nerr\n" {
		t.Errorf("output %q", out)
	}
	if p.Running() || p.Err() == nil || !strings.Contains(p.Describe(), "exit status 3") {
		t.Errorf("running %v, err %v, %s", p.Running(), p.Err(), p.Describe())
	}
	if err := p.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal to an ended child: %v", err)
	}
	if err := p.Stop(time.Second); err != nil {
		t.Errorf("stopping an ended child: %v", err)
	}
}

func TestStartFails(t *testing.T) {
	if _, err := Start(exec.Command("/does/not/exist")); err == nil {
		t.Error("expected an error")
	}
}

func TestPauseAndResume(t *testing.T) {
	p := start(t, "while :; do echo x; done")
	for range 20 {
		if err := p.Pause(); err != nil {
			t.Fatal(err)
		}
		if stopped, err := isStopped(p.PID()); err != nil || !stopped {
			t.Fatalf("after Pause: stopped %v, %v", stopped, err)
		}
		if err := p.Resume(); err != nil {
			t.Fatal(err)
		}
	}
	p.Kill()
	if err := p.Pause(); err == nil {
		t.Error("pausing a dead child: expected an error")
	}
}

func TestStopWakesAStoppedChild(t *testing.T) {
	p := start(t, "trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done")
	await(t, "the child's trap", func() bool { return strings.Contains(p.Output(), "ready") })
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(10 * time.Second); err != nil {
		t.Error(err)
	}
	if p.Err() != nil {
		t.Error(p.Describe())
	}
}

func TestStopKillsTheDeaf(t *testing.T) {
	p := start(t, "trap '' TERM; echo ready; while :; do sleep 0.01; done")
	await(t, "the child's trap", func() bool { return strings.Contains(p.Output(), "ready") })
	if err := p.Stop(50 * time.Millisecond); err == nil {
		t.Error("expected an error")
	}
	if p.Running() || p.ExitCode() != -1 {
		t.Error(p.Describe())
	}
}

func TestOutputIsBounded(t *testing.T) {
	p := start(t, "head -c 2000000 /dev/zero | tr '\\0' x; echo end")
	<-p.Done()
	out := p.Output()
	if len(out) > keptOutput+10 || !strings.HasSuffix(out, "xend\n") || !strings.HasPrefix(out, "[…]") {
		t.Errorf("%d bytes, from %q to %q", len(out), out[:10], out[len(out)-10:])
	}
}
