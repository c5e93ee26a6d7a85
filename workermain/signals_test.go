//go:build unix

package workermain

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

func TestStopLetsHandlersFinish(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(orders[sig].signal, func(t *testing.T) {
			q, flags := newQueue(t)
			c := launch(t, command("main", flags...))
			delay(t, q, hold)
			c.sees("holding")
			c.sends(sig)
			c.sees("stopping.*signal=" + orders[sig].signal)
			c.sends(syscall.SIGUSR1)
			c.ends(exitClean)
			c.sees("released")
			if n, err := q.Len(t.Context()); n != 0 || err != nil {
				t.Errorf("%d tasks left, %v", n, err)
			}
		})
	}
}

func TestSecondSignalExitsAtOnce(t *testing.T) {
	t.Parallel()
	q, flags := newQueue(t)
	c := launch(t, command("main", flags...))
	delay(t, q, hold)
	c.sees("holding")
	c.sends(syscall.SIGTERM)
	c.sees("stopping")
	// What service managers send after TERM, and what comes too late, is not a second signal to stop.
	c.sends(syscall.SIGCONT)
	c.sends(syscall.SIGUSR2)
	c.sends(syscall.SIGTSTP)
	c.staysSilent("exiting at once")
	c.staysSilent("paused")
	c.staysSilent("quiet")
	c.sends(syscall.SIGINT)
	c.ends(exitForced)
	if strings.Contains(c.Output(), "released") {
		t.Errorf("the handler should not have gone on:\n%s", c.Output())
	}
}

func TestHandlersThatDoNotStop(t *testing.T) {
	q, flags := newQueue(t)
	c := launch(t, command("main", append(flags, "-grace", "10ms", "-cancel-grace", "0")...))
	delay(t, q, hold)
	c.sees("holding")
	c.sends(syscall.SIGTERM)
	c.ends(exitRunning)
	c.sees(`still run.*workermain\.hold`)
}

func TestHandlersThatAreStuck(t *testing.T) {
	q, flags := newQueue(t)
	c := launch(t, command("main", append(flags, "-timeout", "10ms", "-stuck-after", "10ms", "-max-stuck", "-1")...))
	delay(t, q, hold)
	c.ends(exitStuck)
	c.sees(`handler is stuck.*workermain\.hold`)
	c.sees("too many handlers are stuck")
}

func TestHandlersThatObey(t *testing.T) {
	q, flags := newQueue(t)
	c := launch(t, command("main", append(flags, "-grace", "0", "-cancel-grace", "1m")...))
	delay(t, q, obey)
	c.sees("waiting")
	c.sends(syscall.SIGTERM)
	c.ends(exitClean)
	c.sees("cause: delayed: worker is shutting down")
	if n, err := q.Len(t.Context()); n != 1 || err != nil {
		t.Errorf("expected that the task was given back, found %d, %v", n, err)
	}
}

func TestPauseAndContinue(t *testing.T) {
	t.Parallel()
	q, flags := newQueue(t)
	c := launch(t, command("main", append(flags, "-listen", "localhost:0")...))
	c.awaitCheck("/readyz", 200, "")
	c.sends(syscall.SIGUSR2)
	c.awaitCheck("/readyz", 503, "paused")
	c.awaitCheck("/healthz", 200, "")
	delay(t, q, say, "hello")
	c.staysSilent("said")
	c.sends(syscall.SIGCONT)
	c.sees("said hello")
	c.awaitCheck("/readyz", 200, "")
	c.sends(syscall.SIGTERM)
	c.ends(exitClean)
}

func TestQuietForGood(t *testing.T) {
	t.Parallel()
	q, flags := newQueue(t)
	c := launch(t, command("main", append(flags, "-listen", "localhost:0")...))
	delay(t, q, hold)
	c.sees("holding")
	c.sends(syscall.SIGTSTP)
	// The program answers, so it was not halted as another would be by Ctrl-Z.
	c.awaitCheck("/readyz", 503, "quiet")
	c.awaitCheck("/healthz", 200, "")
	delay(t, q, say, "hello")
	c.sends(syscall.SIGCONT)
	c.staysSilent("said")
	c.awaitCheck("/readyz", 503, "quiet")
	c.sends(syscall.SIGUSR1)
	c.sees("released")
	c.sends(syscall.SIGTERM)
	c.ends(exitClean)
	if n, err := q.Len(t.Context()); n != 1 || err != nil {
		t.Errorf("expected that the second task is left, found %d, %v", n, err)
	}
}

func TestHaltedAndContinued(t *testing.T) {
	q, flags := newQueue(t)
	c := launch(t, command("main", flags...))
	c.sees("worker started")
	if err := c.Pause(); err != nil {
		t.Fatal(err)
	}
	delay(t, q, say, "hello")
	if err := c.Resume(); err != nil {
		t.Fatal(err)
	}
	c.sees("said hello")
	c.sends(syscall.SIGTERM)
	c.ends(exitClean)
}

func TestIgnoredSignalsStayIgnored(t *testing.T) {
	t.Parallel()
	q, flags := newQueue(t)
	inner := command("main", flags...)
	cmd := exec.Command("sh", append([]string{"-c", `trap "" HUP INT; exec "$0" "$@"`, os.Args[0]}, flags...)...)
	cmd.Env = inner.Env
	c := launch(t, cmd)
	c.sees("worker started")
	c.sends(syscall.SIGHUP)
	c.sends(syscall.SIGINT)
	delay(t, q, say, "hello")
	c.sees("said hello")
	c.staysSilent("stopping")
	c.sends(syscall.SIGTERM)
	c.ends(exitClean)
}
