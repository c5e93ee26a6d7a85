//go:build unix

package top

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

// terminal is a shell in a terminal that tmux makes.
type terminal struct {
	*redisBench

	dir string // of the shell, and of tmux's socket
}

// built is what the go command printed when it built the command delayed, once for all tests.
var built struct {
	sync.Once
	out []byte
	err error
}

// newTerminal starts a shell whose directory has the command delayed.
func newTerminal(t *testing.T, b *redisBench, env ...string) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatalf("tmux is missing: make setup installs it (%v)", err)
	}
	dir := t.TempDir()
	program := filepath.Join(binaries, "delayed")
	built.Do(func() { built.out, built.err = exec.Command("go", "build", "-o", program, "../..").CombinedOutput() })
	if built.err != nil {
		t.Fatalf("go build: %v: %s", built.err, built.out)
	}
	b.Must(os.Symlink(program, filepath.Join(dir, "delayed")))
	x := &terminal{redisBench: b, dir: dir}
	t.Cleanup(func() {
		x.tmux("kill-server")
		x.noRaces()
	})
	args := []string{"-f", "/dev/null", "-u", "new-session", "-d", "-x", "80", "-y", "24", "-c", dir}
	for _, e := range append(env, "ENV=", "LC_ALL=C.UTF-8", "DELAYED_URL="+b.Server.URL(),
		"DELAYED_PREFIX="+strings.TrimSuffix(b.Name, "mail"), "GORACE=exitcode=0 atexit_sleep_ms=0 log_path=race") {
		args = append(args, "-e", e)
	}
	x.tmux(append(args, "sh")...)
	x.keys("echo at''your''service", "Enter")
	x.sees("atyourservice")
	return x
}

// noRaces reports data races, if GOFLAGS has -race, but for one of the library cancelreader, v0.2.2: bubbletea closes
// the terminal at the end, while another goroutine of its own may still read it.
func (x *terminal) noRaces() {
	files, _ := filepath.Glob(filepath.Join(x.dir, "race.*"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		x.Must(err)
		for _, race := range strings.Split(string(text), "WARNING: DATA RACE")[1:] {
			if !strings.Contains(race, "cancelreader.(*epollCancelReader).Close()") {
				x.T.Error(race)
			}
		}
	}
}

// tmux runs a command of tmux.
func (x *terminal) tmux(args ...string) string {
	x.T.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", "socket"}, args...)...)
	cmd.Dir = x.dir // the whole path of the socket might be too long for one
	out, err := cmd.CombinedOutput()
	if err != nil {
		x.T.Errorf("tmux %s: %v: %s", args, err, out)
	}
	return string(out)
}

func (x *terminal) keys(keys ...string) {
	x.T.Helper()
	x.tmux(append([]string{"send-keys"}, keys...)...)
}

func (x *terminal) screen() string { return x.tmux("capture-pane", "-p") }

// sees waits until the screen has all of some texts.
func (x *terminal) sees(texts ...string) {
	x.T.Helper()
	x.Log = screenNow{x}
	for _, text := range texts {
		x.Until("the screen shows "+text, func() bool { return strings.Contains(x.screen(), text) })
	}
}

// screenNow is shown when a wait is in vain.
type screenNow struct{ x *terminal }

func (s screenNow) String() string { return s.x.screen() }

// archived leaves an archived task in the queue, and no worker.
func (b *redisBench) archived(t *testing.T) {
	t.Helper()
	stop := b.work(t)
	_, err := b.q.With(delayed.MaxRetry(0), delayed.TaskID("broken-1")).Delay(bad)
	b.Must(err)
	b.Until("a task is archived", func() bool { return b.size(state.Archived) == 1 })
	stop()
}

// paints finds colours: those other than the terminal's own.
var paints = regexp.MustCompile("\x1b\\[([0-9]+;)*[349][0-7]m")

// TestTerminal drives the command in a terminal: it shows the queues, goes into one, runs an archived task again after
// a confirmation, and leaves the terminal as it was.
func TestTerminal(t *testing.T) {
	t.Parallel()
	b := newRedisBench(t)
	b.archived(t)
	x := newTerminal(t, b)
	x.keys("echo was here", "Enter")
	x.sees("was here\n")
	x.keys("./delayed top; echo left with $?", "Enter")
	x.sees("1 queue ", "> mail", "ARCHIVED")
	if got := x.tmux("display", "-p", "#{alternate_on} #{mouse_any_flag}"); got != "1 1\n" {
		t.Errorf("alternate screen and mouse are %q, expected both", got)
	}
	if text := x.tmux("capture-pane", "-e", "-p"); !paints.MatchString(text) {
		t.Errorf("no colours: %q", text)
	}
	x.tmux("resize-window", "-x", "120", "-y", "40")
	x.sees("runs and failures, last 2m")
	x.keys("Enter")
	x.sees("Queues › mail › archived", "> top.bad()", "mailbox full", "1-1 of 1")
	x.keys("Enter")
	x.sees("task broken-1", "failed        attempt 1, ", "on ", "mailbox full")
	x.keys("Escape")
	x.sees("1-1 of 1")
	x.keys("r")
	x.sees("Run now 1 archived task of queue mail?")
	x.keys("n")
	x.Until("the question is gone", func() bool { return !strings.Contains(x.screen(), "[y] yes") })
	if n := b.size(state.Archived); n != 1 {
		t.Fatalf("%d tasks are archived after a no, expected 1", n)
	}
	x.keys("r")
	x.sees("[y] yes")
	x.keys("y")
	x.sees("pending 1", "No such tasks.")
	if n := b.size(state.Pending); n != 1 {
		t.Errorf("%d tasks are pending, expected 1", n)
	}
	x.keys("q")
	x.restored()
}

// restored waits until the command has ended, and fails the test unless the terminal is as before.
func (x *terminal) restored() {
	x.T.Helper()
	x.sees("was here", "left with 0")
	if got := x.tmux("display", "-p", "#{alternate_on} #{mouse_any_flag} #{cursor_flag}"); got != "0 0 1\n" {
		x.T.Errorf("alternate screen, mouse and cursor are %q, expected only the cursor", got)
	}
	x.keys("stty -a", "Enter")
	x.sees(" icanon", " echo ")
}

// TestTerminalWithoutColours ends the command by a signal, and by Ctrl-C.
func TestTerminalWithoutColours(t *testing.T) {
	t.Parallel()
	b := newRedisBench(t)
	b.archived(t)
	x := newTerminal(t, b, "NO_COLOR=1")
	x.keys("echo was here", "Enter")
	for _, end := range []func(){
		func() { x.keys("C-c") },
		func() { x.terminate() },
	} {
		x.keys("clear; echo was here; sh -c 'echo $$ >pid; exec ./delayed top'; echo left with $?", "Enter")
		x.sees("> mail")
		if text := x.tmux("capture-pane", "-e", "-p"); paints.MatchString(text) {
			t.Errorf("colours with NO_COLOR: %q", text)
		}
		end()
		x.restored()
	}
}

// TestTerminalLists shows the periodic entries, groups and records of the audit log, and pauses an entry.
func TestTerminalLists(t *testing.T) {
	t.Parallel()
	b := newRedisBench(t)
	b.Must(b.q.Periodic().Set(t.Context(), delayed.Entry{Name: "digest", Spec: "@daily", Task: delayed.Call(good, 1)}))
	_, err := b.q.With(delayed.Group("search"), delayed.Gather(delayed.GatherPolicy{Grace: time.Hour})).
		Delay(together, 1, 2)
	b.Must(err)
	b.archived(t)
	x := newTerminal(t, b)
	x.keys("./delayed retry broken-1; ./delayed top", "Enter")
	x.sees("1 queue ", "5 Cron  6 Groups  7 Audit")
	x.keys("5")
	x.sees("1 periodic entry", "> digest  mail ", " @daily ", " top.good ")
	x.keys("p")
	x.sees("Pause entry digest of queue mail?")
	x.keys("y")
	x.sees("1 periodic entry, 1 paused")
	x.keys("Enter")
	x.sees("Cron › mail › entry digest", "It has not ticked yet.")
	x.keys("6")
	x.sees("1 group ", "> search  mail ", " top.together ", " 1  in ")
	x.keys("f")
	x.sees("Fire group search of queue mail now?", "1 call")
	x.keys("y")
	x.sees("fired group search of queue mail", " ago")
	x.keys("7")
	x.sees("> ", "fire group", "search", "pause entry", "digest", " run ", "broken-1")
	x.keys("Down", "Down", "Enter")
	x.sees("Queues › mail › task broken-1", "attempt 1, ")
}

// TestTerminalChangesTask gives a task another due time and other arguments.
func TestTerminalChangesTask(t *testing.T) {
	t.Parallel()
	b := newRedisBench(t)
	_, err := b.q.With(delayed.In(time.Hour), delayed.TaskID("later")).Delay(good, 1)
	b.Must(err)
	b.work(t)
	b.Until("the worker has published its functions", func() bool {
		functions, err := b.src.Functions(t.Context(), "mail")
		b.Must(err)
		return len(functions) > 0
	})
	x := newTerminal(t, b)
	x.keys("./delayed top", "Enter")
	x.sees("> mail")
	x.keys("i", "later", "Enter")
	x.sees("Queues › mail › task later", "top.good(1)", "due")
	x.keys("R")
	x.sees("reschedule 1 scheduled task to:")
	x.keys("9d", "Enter")
	x.sees("Reschedule 1 scheduled task of queue mail to ", "(in 9d0h)?")
	x.keys("y")
	x.sees("(in 8d23h)")
	x.keys("e")
	x.sees("arguments: [1]")
	x.keys("BSpace", "7", "Enter")
	x.sees("Edit 1 scheduled task of queue mail?", "Its arguments will be [7]")
	x.keys("y")
	x.sees("top.good(7)")
}

// terminate sends the command the signal that supervisors end programs with.
func (x *terminal) terminate() {
	x.T.Helper()
	text, err := os.ReadFile(filepath.Join(x.dir, "pid"))
	x.Must(err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	x.Must(err)
	x.Must(syscall.Kill(pid, syscall.SIGTERM))
}

// TestTerminalOutlivesRedis stops Redis for a while.
func TestTerminalOutlivesRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	b := &redisBench{Bench: redistest.NewBench(t, server), rdb: rdb}
	b.Name, b.q = "mail", delayed.NewQueue("mail", rdb)
	_, err = b.q.Delay(good, 1)
	b.Must(err)
	x := newTerminal(t, b)
	x.keys("./delayed top --interval 200ms; echo left with $?", "Enter")
	x.sees("> mail", "no workers")
	server.Stop(t)
	x.sees("Redis does not answer; this is from", "> mail")
	server.Restart(t)
	x.Until("it has found Redis again", func() bool { return !strings.Contains(x.screen(), "does not answer") })
	x.keys("q")
	x.sees("left with 0")
}
