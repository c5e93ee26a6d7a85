package redistest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/childproc"
)

const (
	// startLimit is generous: a loaded machine starts a server in seconds, an idle one in 15 ms.
	startLimit = 30 * time.Second
	// stopLimit bounds a graceful stop.
	stopLimit = 10 * time.Second
	portTries = 20

	// Ports are taken from below the range that systems use for outgoing connections: otherwise a client that
	// reconnects while the server is down can be given the server's own port. A cluster node also needs its port plus
	// busOffset.
	firstPort = 11000
	portCount = 10000
	busOffset = 10000
)

// Server is a running redis-server. Its methods are safe for concurrent use, except that only one goroutine may start
// and stop it.
type Server struct {
	port    int
	path    string
	args    []string
	private bool

	mu   sync.Mutex // protects the following fields
	proc *childproc.Process
	down bool // the test has ended the process
}

// errPortTaken says that another process was faster.
var errPortTaken = errors.New("port is taken")

// launch starts a server on a free port.
func launch(dir string, args []string) (*Server, error) {
	path, err := binary()
	if err != nil {
		return nil, err
	}
	s := &Server{path: path}
	for range portTries {
		s.port = freePort()
		s.args = append([]string{
			"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no",
			"--loglevel", "notice",
		}, args...)
		if err = s.start(); !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// freePort returns a port of the loopback interface that is free now, as is the one a cluster's bus would use.
func freePort() int {
	for {
		port := firstPort + rand.IntN(portCount)
		if isFree(port) && isFree(port+busOffset) {
			return port
		}
	}
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// start runs the program and waits until it, and not another server on that port, answers.
func (s *Server) start() error {
	proc, err := childproc.Start(exec.Command(s.path, s.args...))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	var last error
	for {
		if last = s.answers(proc.PID()); last == nil {
			s.mu.Lock()
			s.proc, s.down = proc, false
			s.mu.Unlock()
			return nil
		}
		select {
		case <-proc.Done():
			out := proc.Output()
			if strings.Contains(out, "Address already in use") {
				return errPortTaken
			}
			return fmt.Errorf("%s %q ended at start: %s\n%s", s.path, s.args, proc.Describe(), out)
		case <-ctx.Done():
			proc.Kill()
			return fmt.Errorf("%s did not answer within %v: %w\n%s", s.path, startLimit, last, proc.Output())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// answers returns nil if the process answers commands and has loaded its data.
func (s *Server) answers(pid int) error {
	conn, err := redis.Dial("tcp", s.Addr(), redis.DialConnectTimeout(time.Second), redis.DialReadTimeout(time.Second))
	if err != nil {
		return err
	}
	defer conn.Close()
	info, err := redis.String(conn.Do("INFO"))
	if err != nil {
		return err
	}
	if got := infoField(info, "process_id"); got != strconv.Itoa(pid) {
		return fmt.Errorf("expected process %d to answer on port %d, found %s", pid, s.port, got)
	}
	if infoField(info, "loading") == "1" {
		return errors.New("still loading its data")
	}
	return nil
}

// infoField returns the value of one line of INFO or CLUSTER INFO, "" if there is none.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (s *Server) process() *childproc.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc
}

// takeDown returns the process, which the test is about to end.
func (s *Server) takeDown() *childproc.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = true
	return s.proc
}

// end ends the server at the end of its test, and fails the test if the server had ended by itself.
func (s *Server) end(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	proc, down := s.proc, s.down
	s.mu.Unlock()
	if !down && !proc.Running() {
		t.Errorf("redistest: the server ended during the test: %s\n%s", proc.Describe(), proc.Output())
	}
	proc.Kill()
}

// Addr returns host and port.
func (s *Server) Addr() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// URL returns the address as delayed.Dial takes it.
func (s *Server) URL() string { return "redis://" + s.Addr() + "/0" }

// PID returns the id of the server's process.
func (s *Server) PID() int { return s.process().PID() }

// Output returns what the server has logged since its last start.
func (s *Server) Output() string { return s.process().Output() }

// Stop ends the server as an operator would, with SIGTERM. What it should keep is written.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	s.mustBePrivate(t)
	if err := s.takeDown().Stop(stopLimit); err != nil {
		t.Fatalf("redistest: %v", err)
	}
}

// Kill ends the server with SIGKILL.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	s.mustBePrivate(t)
	s.takeDown().Kill()
}

// Restart starts the server again on the same port, in the same directory and with the same arguments; it ends it first
// (see Stop) if it is running.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.mustBePrivate(t)
	if s.process().Running() {
		s.Stop(t)
	}
	var err error
	for range portTries {
		if err = s.start(); !errors.Is(err, errPortTaken) {
			break
		}
		// Somebody holds the port for a moment: connections to and from it that are being closed are not in the way.
		<-time.After(100 * time.Millisecond)
	}
	if err != nil {
		t.Fatalf("redistest: restart on port %d: %v", s.port, err)
	}
}

// Pause stops the process in its tracks (SIGSTOP): connections stay, nothing is answered.
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	s.mustBePrivate(t)
	if err := s.process().Pause(); err != nil {
		t.Fatalf("redistest: pause: %v", err)
	}
}

// Resume lets a paused server go on (SIGCONT). It then answers what was sent in the meantime.
func (s *Server) Resume(t testing.TB) {
	t.Helper()
	s.mustBePrivate(t)
	if err := s.process().Resume(); err != nil {
		t.Fatalf("redistest: resume: %v", err)
	}
}

func (s *Server) mustBePrivate(t testing.TB) {
	t.Helper()
	if !s.private {
		t.Fatal("redistest: the shared server cannot be stopped, killed or paused: use Start")
	}
}
