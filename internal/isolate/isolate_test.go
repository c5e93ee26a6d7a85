//go:build linux

package isolate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed/internal/loop"
)

var errCanceled = errors.New("canceled")

func TestMain(m *testing.M) {
	if IsChild() {
		Serve(Server{
			Setup: func() error {
				fmt.Fprintln(os.Stderr, "setting up")
				switch text := os.Getenv("ISOLATE_TEST_FAILS"); text {
				case "":
				case "hangs":
					<-time.After(time.Hour)
				default:
					return errors.New(text)
				}
				return nil
			},
			Run: runJob, Cause: func(byte) error { return errCanceled },
			Stacks: func() string {
				buf := make([]byte, 64<<10)
				return string(buf[:runtime.Stack(buf, true)])
			},
		})
	}
	os.Exit(m.Run())
}

func newPool(t *testing.T, change func(*Config)) *Pool {
	t.Helper()
	log := logrus.New()
	log.SetOutput(testWriter{t})
	cfg := Config{
		Idle: time.Minute, Cause: func(context.Context) byte { return 1 }, Log: loop.NewJournal(log),
		Args: []string{os.Args[0]}, Output: io.Discard,
	}
	if change != nil {
		change(&cfg)
	}
	p := NewPool(cfg)
	t.Cleanup(p.Close)
	return p
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(string(b))
	return len(b), nil
}

// grace is short, so that tests are, and long enough for a child that obeys on a busy machine.
func grace() Patience { return Patience{Grace: 250 * time.Millisecond} }

// run runs a job that must succeed.
func run(t *testing.T, p *Pool, job string) string {
	t.Helper()
	verdict, err := p.Run(t.Context(), []byte(job), func([]byte) {}, grace)
	if err != nil {
		t.Fatalf("%s: %v", job, err)
	}
	return string(verdict)
}

// dies runs a job whose child must die. The context of the job ends when it reports.
func dies(t *testing.T, p *Pool, job string) *DeathError {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := p.Run(ctx, []byte(job), func([]byte) { cancel() }, grace)
	var death *DeathError
	if !errors.As(err, &death) || !errors.Is(err, ErrDied) {
		t.Fatalf("%s: found the error %v", job, err)
	}
	return death
}

// alive reports whether a process exists and is no zombie.
func alive(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && !strings.Contains(string(status), "State:\tZ")
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	late := time.After(time.Minute)
	for !ok() {
		select {
		case <-late:
			t.Fatalf("waited for a minute: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

func TestJobsRunInOneChild(t *testing.T) {
	p := newPool(t, nil)
	if got := run(t, p, "echo a b"); got != "a b" {
		t.Errorf("found %q", got)
	}
	first := run(t, p, "pid")
	if second := run(t, p, "pid"); first != second || first == strconv.Itoa(os.Getpid()) {
		t.Errorf("the first job ran in process %s, the second in %s", first, second)
	}
	var reports []string
	if _, err := p.Run(t.Context(), []byte("report 1 2 3"), func(b []byte) { reports = append(reports, string(b)) },
		grace); err != nil || strings.Join(reports, " ") != "1 2 3" {
		t.Errorf("reports %v, %v", reports, err)
	}
	if got := run(t, p, "goexit"); got != "gone" {
		t.Errorf("found %q", got)
	}
	if third := run(t, p, "pid"); third != first {
		t.Errorf("runtime.Goexit has cost a child")
	}
	if got := run(t, p, "environment"); got != "" {
		t.Errorf("what a child starts would be a child: %q", got)
	}
}

func TestChildrenEndAfterSomeJobs(t *testing.T) {
	p := newPool(t, func(c *Config) { c.MaxJobs = 2 })
	pids := map[string]int{}
	for range 6 {
		pids[run(t, p, "pid")]++
	}
	if len(pids) != 3 {
		t.Errorf("jobs of each child: %v", pids)
	}
	for pid := range pids {
		n, _ := strconv.Atoi(pid)
		until(t, "it ends", func() bool { return !alive(n) })
	}
}

func TestIdleChildrenEnd(t *testing.T) {
	p := newPool(t, func(c *Config) { c.Idle = 20 * time.Millisecond })
	pid, _ := strconv.Atoi(run(t, p, "pid"))
	until(t, "it ends", func() bool { return !alive(pid) })
	run(t, p, "echo again")
}

func TestChildrenAreStartedAhead(t *testing.T) {
	p := newPool(t, func(c *Config) { c.Ahead, c.Idle = 2, 10*time.Millisecond })
	idle := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.idle)
	}
	p.Start(true)
	until(t, "two wait", func() bool { return idle() == 2 })
	_ = dies(t, p, "exit")
	until(t, "two wait again", func() bool { return idle() == 2 })
	p.mu.Lock()
	old := slices.Clone(p.idle)
	p.mu.Unlock()
	for _, c := range old {
		_ = c.cmd.Process.Kill()
	}
	until(t, "two others wait", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		isOld := func(c *process) bool { return slices.Contains(old, c) }
		return len(p.idle) == 2 && !slices.ContainsFunc(p.idle, isOld)
	})
}

// TestSpareChildrenEnd: of children that have been idle for too long, as many stay as are started ahead.
func TestSpareChildrenEnd(t *testing.T) {
	p := newPool(t, func(c *Config) { c.Ahead, c.Idle = 1, time.Hour })
	idle := func() []*process {
		p.mu.Lock()
		defer p.mu.Unlock()
		return slices.Clone(p.idle)
	}
	p.Start(true)
	until(t, "one waits", func() bool { return len(idle()) == 1 })
	for range 2 {
		c, err := p.newChild()
		if err != nil {
			t.Fatal(err)
		}
		p.put(c)
	}
	before := idle()
	p.retireIdle(time.Now().Add(2 * time.Hour))
	if left := idle(); !slices.Equal(left, before[2:]) || !before[0].hasDied() || !before[1].hasDied() {
		t.Errorf("%d of 3 children are left, expected the one that was idle last", len(left))
	}
}

// TestEveryEnd: however a job ends its child, the error says so, nothing is left, and the next job runs.
func TestEveryEnd(t *testing.T) {
	p := newPool(t, nil)
	for _, test := range []struct {
		job  string
		want []string // parts of the error
		more func(t *testing.T, d *DeathError)
	}{
		{"exit", []string{"exit status 3"}, nil},
		{"panic", []string{"exit status 2", "panic: beside"}, nil},
		{"overflow", []string{"exit status 2", "fatal error: stack overflow"}, nil},
		{"segv", []string{"SIGSEGV"}, nil},
		{"spin", []string{"terminated", "asked to end 250ms after"}, func(t *testing.T, d *DeathError) {
			t.Helper()
			if !strings.Contains(d.Stacks, "isolate.runJob") {
				t.Errorf("stacks:\n%s", d.Stacks)
			}
		}},
		{"sleep", []string{"terminated"}, nil},
		{"deaf", []string{"signal: killed", "and killed 250ms later"}, func(t *testing.T, d *DeathError) {
			t.Helper()
			if !strings.Contains(d.Stacks, "isolate.runJob") {
				t.Errorf("stacks:\n%s", d.Stacks)
			}
		}},
		{"stopped", []string{"killed"}, nil},
		{"close", nil, nil},
		{"babble 3000000", []string{"exit status 1"}, func(t *testing.T, d *DeathError) {
			t.Helper()
			if !strings.HasPrefix(d.Output, "first") || !strings.HasSuffix(d.Output, "last") || len(d.Output) > 20<<10 {
				t.Errorf("%d bytes of output are kept", len(d.Output))
			}
		}},
	} {
		t.Run(test.job, func(t *testing.T) {
			d := dies(t, p, test.job)
			for _, part := range test.want {
				if !strings.Contains(d.Error(), part) {
					t.Errorf("%q lacks %q; the output was\n%s", d.Error(), part, d.Output)
				}
			}
			if test.more != nil {
				test.more(t, d)
			}
			if alive(d.Pid) {
				t.Errorf("process %d goes on", d.Pid)
			}
			if got := run(t, p, "echo next"); got != "next" {
				t.Errorf("next: %q", got)
			}
		})
	}
}

func TestMemoryIsBounded(t *testing.T) {
	p := newPool(t, func(c *Config) { c.Limits.Memory = 256 << 20 })
	if limit, err := strconv.Atoi(run(t, p, "limit")); err != nil || limit <= 256<<20 {
		t.Errorf("the limit of the collector is %d bytes, %v: expected more than the limit of the child, because that "+
			"counts from its start", limit, err)
	}
	d := dies(t, p, "allocate")
	// The second is what the race detector says, the third what happens when Go's collector gets no memory for itself.
	if !strings.Contains(d.Error(), "out of memory") &&
		!strings.Contains(d.Output, "ThreadSanitizer failed to allocate") && !strings.Contains(d.Output, "runtime.gc") {
		t.Errorf("found %v; the output was\n%s", d, d.Output)
	}
	run(t, p, "echo next")
}

func TestCPUIsBounded(t *testing.T) {
	p := newPool(t, func(c *Config) { c.Limits.CPU = time.Second })
	if d := dies(t, p, "compute"); !strings.Contains(d.Error(), "processor time") {
		t.Errorf("found %v", d)
	}
}

// TestJobThatHeedsItsContext keeps its child.
func TestJobThatHeedsItsContext(t *testing.T) {
	p := newPool(t, nil)
	pid := run(t, p, "pid")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	verdict, err := p.Run(ctx, []byte("wait"), func([]byte) {}, func() Patience { return Patience{Grace: time.Minute} })
	if err != nil || string(verdict) != "canceled" {
		t.Errorf("%q, %v", verdict, err)
	}
	if again := run(t, p, "pid"); again != pid {
		t.Error("it has cost the child")
	}
}

// TestGrandchildrenEnd: what a job has started ends with its child, however that ends, and leaves no zombie where this
// process inherits it, as the first process of a container does.
func TestGrandchildrenEnd(t *testing.T) {
	const setSubreaper = 36
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setSubreaper, 1, 0); errno != 0 {
		t.Fatal(errno)
	}
	for name, end := range map[string]func(*Pool){
		"crash": func(p *Pool) { _ = dies(t, p, "exit") },
		"kill":  func(p *Pool) { _ = dies(t, p, "deaf") },
		"close": func(p *Pool) { p.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t, nil)
			pid, err := strconv.Atoi(run(t, p, "child"))
			if err != nil {
				t.Fatal(err)
			}
			end(p)
			until(t, "the grandchild ends and is reaped", func() bool {
				return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
			})
		})
	}
}

func TestNoDescriptorIsInherited(t *testing.T) {
	f, err := os.Open("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := newPool(t, nil)
	run(t, p, "pid") // so that there is another child, with pipes
	for target := range strings.FieldsSeq(run(t, p, "descriptors")) {
		if strings.HasPrefix(target, "/proc/self/stat") || strings.HasSuffix(target, "/stat") {
			t.Errorf("a child has %s", target)
		}
	}
}

// What a set-up writes to standard error is passed on when it is over. If it fails, it is in the error alone, which is
// logged once: children that do not start would flood the log.
func TestSetUpFails(t *testing.T) {
	var log strings.Builder
	p := newPool(t, func(c *Config) { c.Output = &log })
	run(t, p, "echo")
	p.Close()
	if log.String() != "setting up\n" {
		t.Errorf("standard error has %q", log.String())
	}
	log.Reset()
	t.Setenv("ISOLATE_TEST_FAILS", "no database")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p = newPool(t, func(c *Config) {
		told := logrus.New()
		told.SetOutput(writerFunc(cancel)) // when the first child has failed
		c.Output, c.Log = &log, loop.NewJournal(told)
	})
	_, err := p.Run(ctx, []byte("echo"), func([]byte) {}, grace)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "no database") ||
		!strings.Contains(err.Error(), "setting up") {
		t.Errorf("found %v", err)
	}
	p.Close()
	if log.String() != "" {
		t.Errorf("standard error has %q", log.String())
	}
}

// writerFunc is called for each write.
type writerFunc func()

func (f writerFunc) Write(b []byte) (int, error) {
	f()
	return len(b), nil
}

// The limit of the set-up does not bound the jobs that follow.
func TestSetUpLimitEnds(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	p := &process{out: &output{to: io.Discard}, file: r, answers: bufio.NewReader(r)}
	write := func(kind byte) {
		if _, err := w.Write(appendFrame(nil, kind)); err != nil {
			t.Fatal(err)
		}
	}
	const limit = time.Second
	write(frameReady)
	if err := p.awaitReady(t.Context(), limit); err != nil {
		t.Fatal(err)
	}
	<-time.After(limit)
	write(frameVerdict)
	if kind, _, err := readFrame(p.answers, &p.frame); err != nil || kind != frameVerdict {
		t.Errorf("after the limit: frame %q, %v, expected the verdict of a job", kind, err)
	}
}

// TestChildrenEndWithTheirParent kills a process that has children.
func TestChildrenEndWithTheirParent(t *testing.T) {
	if os.Getenv("ISOLATE_TEST_PARENT") != "" {
		p := newPool(t, nil)
		pid, deaf := run(t, p, "pid"), make(chan struct{})
		go func() {
			defer close(deaf)
			_, _ = p.Run(t.Context(), []byte("deaf"), func([]byte) {}, grace)
		}()
		fmt.Println("child", pid)
		<-deaf
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestChildrenEndWithTheirParent$")
	cmd.Env = append(os.Environ(), "ISOLATE_TEST_PARENT=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscanf(out, "child %d\n", &pid); err != nil {
		t.Fatal(err)
	}
	if !alive(pid) {
		t.Fatal("there is no child")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	until(t, "the child ends", func() bool { return !alive(pid) })
}

func BenchmarkJob(b *testing.B) {
	log := logrus.New()
	p := NewPool(Config{
		Idle: time.Minute, Cause: func(context.Context) byte { return 1 }, Log: loop.NewJournal(log),
		Args: []string{os.Args[0]}, Output: io.Discard,
	})
	defer p.Close()
	job := []byte("echo x")
	for b.Loop() {
		if _, err := p.Run(b.Context(), job, func([]byte) {}, grace); err != nil {
			b.Fatal(err)
		}
	}
}
