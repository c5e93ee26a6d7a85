//go:build unix

// Package examples has no code of its own: its tests build all examples, run them as a reader would, and check what
// they print.
package examples

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/embedded"
)

// limit is the timeout for events that should come soon.
const limit = 2 * time.Minute

// programs is the directory of the built examples.
var programs string

// tested are the examples that are run here. python-producer, which needs Python, is run by the tests in itest.
var tested = []string{
	"custom-logger", "dashboard", "dependencies", "graceful-shutdown", "isolated", "producer", "quickstart", "worker",
}

func TestMain(m *testing.M) {
	code, err := testMain(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func testMain(m *testing.M) (int, error) {
	var err error
	if programs, err = os.MkdirTemp("", "delayed-examples"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(programs)
	args := []string{"build", "-o", programs}
	if race {
		args = append(args, "-race")
	}
	for _, name := range tested {
		args = append(args, "./"+name)
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return 1, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return m.Run(), nil
}

func TestEveryExampleIsTested(t *testing.T) {
	mains, err := filepath.Glob("*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range mains {
		found = append(found, filepath.Dir(path))
	}
	if strings.Join(found, " ") != strings.Join(tested, " ") {
		t.Errorf("expected tests of %v, found examples %v", tested, found)
	}
}

// program is a running example.
type program struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{}

	mu  sync.Mutex
	out bytes.Buffer // stdout and stderr
}

func (p *program) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *program) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// start starts an example with a REDIS_URL, which may be empty.
func start(t *testing.T, redisURL, name string, args ...string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.Command(filepath.Join(programs, name), args...), done: make(chan struct{})}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "REDIS_URL=") && !strings.HasPrefix(v, "DELAYED_") {
			p.cmd.Env = append(p.cmd.Env, v)
		}
	}
	// Under the race detector a program would sleep for a second before it exits.
	p.cmd.Env = append(p.cmd.Env, "GORACE=atexit_sleep_ms=0")
	if redisURL != "" {
		p.cmd.Env = append(p.cmd.Env, "REDIS_URL="+redisURL)
	}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.WaitDelay = time.Second // for a child process that keeps the output open
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // ends looks at the code
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // also the processes that it has started
		<-p.done
	})
	return p
}

// sees waits until the program has printed something that matches pattern.
func (p *program) sees(pattern string) {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	await(p.t, pattern, func() error {
		if !re.MatchString(p.output()) {
			return errors.New(p.output())
		}
		return nil
	})
}

func (p *program) sends(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatalf("%v: %v\n%s", sig, err, p.output())
	}
}

// interrupt sends the signal of Ctrl-C in a terminal: SIGINT to the program and to the processes that it has started.
func (p *program) interrupt() {
	p.t.Helper()
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT); err != nil {
		p.t.Fatalf("%v\n%s", err, p.output())
	}
}

// ends waits for the end of the program, and checks its exit code, which is -1 if a signal ended it.
func (p *program) ends(code int) string {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(limit):
		p.t.Fatalf("did not end within %v:\n%s", limit, p.output())
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Fatalf("expected exit code %d, found %d:\n%s", code, got, p.output())
	}
	return p.output()
}

// await waits until check returns nil.
func await(t *testing.T, what string, check func() error) {
	t.Helper()
	late := time.After(limit)
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-late:
			t.Fatalf("waited %v for %q: %v", limit, what, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// embeddedURL is that of an embedded server of the test's own.
func embeddedURL(t *testing.T) string {
	t.Helper()
	server, err := embedded.Start(embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return server.URL()
}

// realRedis starts a Redis server of the test's own and returns its URL and a connection.
func realRedis(t *testing.T) (url string, conn redis.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	path := os.Getenv("REDIS_SERVER")
	if path == "" {
		path = "redis-server"
	}
	cmd := exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: install redis-server, or set REDIS_SERVER to the path of one", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	await(t, "Redis", func() error {
		if conn, err = redis.Dial("tcp", "127.0.0.1:"+port); err != nil {
			return err
		}
		_, err = conn.Do("PING")
		return err
	})
	t.Cleanup(func() { conn.Close() })
	return "redis://127.0.0.1:" + port + "/0", conn
}
