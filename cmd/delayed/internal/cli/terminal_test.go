package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

// built is the folder of the command, which is built once for all tests that run it as a process of its own.
var built struct {
	sync.Once
	out []byte
	err error
}

// binary returns the path of the command.
func binary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(binaries, "delayed")
	built.Do(func() { built.out, built.err = exec.Command("go", "build", "-o", path, "../..").CombinedOutput() })
	if built.err != nil {
		t.Fatalf("go build: %v: %s", built.err, built.out)
	}
	return path
}

// terminal is a shell in a terminal that tmux makes, with the command on its PATH.
type terminal struct {
	*bench
	dir string // of tmux's socket, and home of the shell
}

// bash goes on with the rest of a line when Ctrl-C has ended a command that handles it; other shells do not.
var bash = []string{"bash", "--norc", "--noprofile"}

// newTerminal starts a shell.
func newTerminal(t *testing.T, b *bench, shell ...string) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatalf("tmux is missing: make setup installs it (%v)", err)
	}
	x := &terminal{bench: b, dir: t.TempDir()}
	t.Cleanup(func() { x.tmux("kill-server") })
	// By env, because the shell that tmux starts with may read files that set other values.
	args := []string{
		"-f", "/dev/null", "-u", "new-session", "-d", "-x", "110", "-y", "30", "-c", x.dir,
		"env", "LC_ALL=C.UTF-8", "HOME=" + x.dir, "PS1=$ ", "ENV=", "HISTFILE=/dev/null", "fish_history=",
		"PATH=" + filepath.Dir(binary(t)) + ":" +
			os.Getenv("PATH"),
	}
	for name, value := range b.env {
		args = append(args, name+"="+value)
	}
	x.tmux(append(args, shell...)...)
	x.Log = shown{x}
	x.keys("echo at''your''service", "Enter")
	x.sees("\natyourservice")
	return x
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
	for _, text := range texts {
		x.Until("the screen shows "+text, func() bool { return strings.Contains(x.screen(), text) })
	}
}

// shown is what tests print when a wait is in vain.
type shown struct{ x *terminal }

func (s shown) String() string { return s.x.screen() }

var greenDone = regexp.MustCompile("\x1b\\[([0-9]+;)*32m(\x1b\\[[0-9;]*m)*task done")

// TestTerminal asks in a terminal before it deletes, watches, follows, and ends with Ctrl-C.
func TestTerminal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.work(welcome)
	later := b.q.With(delayed.In(time.Hour))
	for i := range 3 {
		_, err := later.With(delayed.Header("h", hostile)).Delay(welcome, i, hostile)
		b.Must(err)
	}
	x := newTerminal(t, b, bash...)
	x.keys("delayed delete --all -q mail -s scheduled; echo refused: $?", "Enter")
	x.sees("Delete 3 scheduled tasks in queue mail?")
	x.keys("n", "Enter")
	x.sees("nothing was done", "refused: 4")
	if n := b.size(queueName, state.Scheduled); n != 3 {
		t.Fatalf("%d tasks are scheduled after a no, expected 3", n)
	}
	x.keys("delayed archive --all -q mail -s scheduled; echo interrupted: $?", "Enter")
	x.sees("Archive 3 scheduled tasks in queue mail?")
	x.keys("C-c")
	x.sees("interrupted: 130")
	x.keys("clear; delayed tasks mail", "Enter")
	x.sees("mail scheduled: 3 of 3", `mailbox\nfull:\x1b[31m red\u202e`)
	x.keys("clear; delayed queues --watch 50ms; echo watched: $?", "Enter")
	x.sees("QUEUE", "SCHEDULED")
	_, err := later.Delay(welcome, 4, "en")
	b.Must(err)
	x.Until("it shows four tasks", func() bool {
		for line := range strings.SplitSeq(x.screen(), "\n") {
			if f := strings.Fields(line); len(f) > 3 && f[0] == queueName && f[3] == "4" {
				return true
			}
		}
		return false
	})
	x.keys("C-c")
	x.sees("watched: 0")
	x.keys("clear; delayed tail mail; echo left with $?", "Enter")
	x.sees("Following mail; Ctrl-C ends it.")
	x.delayUntil("it tells of a task", delayed.Call(welcome, 1, "en"), func() bool {
		return strings.Contains(x.screen(), "task done cli_test.welcome")
	})
	x.keys("C-c")
	x.sees("left with 0")
	if text := x.tmux("capture-pane", "-e", "-p"); !greenDone.MatchString(text) {
		t.Errorf("no green in %q", text)
	}
	x.keys("clear; delayed delete --all -q mail -s scheduled -y 2>&1 | cat; echo deleted: $?", "Enter")
	x.sees("mail scheduled delete: done 4", "deleted: 0")
	w.Quiet()
}

// TestTerminalOutlivesRedis follows events while Redis restarts.
func TestTerminalOutlivesRedis(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	server := redistest.Start(t)
	rdb, err := delayed.Dial(server.URL())
	b.Must(err)
	t.Cleanup(func() { rdb.Close() })
	b.rdb, b.q = rdb, delayed.NewQueue(queueName, rdb)
	b.env = map[string]string{"REDIS_URL": server.URL()}
	b.work(welcome)
	x := newTerminal(t, b, bash...)
	x.keys("clear; delayed tail; echo left with $?", "Enter")
	x.sees("Following all queues")
	x.delayUntil("it tells of a task", delayed.Call(welcome, 1, "en"), func() bool {
		return strings.Contains(x.screen(), "task done")
	})
	server.Stop(t)
	x.sees("delayed: connecting to Redis")
	server.Restart(t)
	x.tmux("send-keys", "-R") // an empty screen
	x.Until("it tells of a task again", func() bool {
		_, _ = b.q.Delay(welcome, 1, "en")  // by a connection that Redis has closed, maybe
		<-time.After(10 * time.Millisecond) // between two tasks
		return strings.Contains(x.screen(), "task done")
	})
	x.keys("C-c")
	x.sees("left with 0")
}
