package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/gomodule/redigo/redis"
)

// server is the store for one measurement.
type server struct {
	cmd     *exec.Cmd
	addr    string // host:port, or a URL
	dir     string // removed at the end
	release func() // from startTied
	quit    bool   // ends by SIGQUIT, which lets PostgreSQL end its children
}

// The settings of durability: no append-only file, one that is synced every second, one that is synced after every
// command.
const (
	aofOff      = "off"
	aofEverysec = "everysec"
	aofAlways   = "always"
)

func serverBinary() string { return cmp.Or(os.Getenv("REDIS_SERVER"), "redis-server") }

func serverVersion() (string, error) {
	out, err := exec.Command(serverBinary(), "--version").Output()
	if err != nil {
		return "", fmt.Errorf("redis-server is needed; install it with `make setup` or set REDIS_SERVER: %w", err)
	}
	_, version, _ := strings.Cut(string(out), "v=")
	version, _, _ = strings.Cut(version, " ")
	return version, nil
}

// startServer starts a redis-server with the given durability.
func startServer(aof string) (*server, error) {
	args := map[string][]string{
		aofOff:      {"--appendonly", "no"},
		aofEverysec: {"--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0"},
		aofAlways:   {"--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0"},
	}[aof]
	return launch(aof, args, func(port, dir string) (*exec.Cmd, string, error) {
		args = append(args, "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", dir, "--loglevel", "warning")
		return exec.Command(serverBinary(), args...), "127.0.0.1:" + port, nil
	}, func(_ context.Context, addr string) error {
		conn, err := redis.Dial("tcp", addr)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Do("PING")
		return err
	})
}

// launch starts a server whose settings for a durability are known on a free port of the loopback interface, in a
// folder of its own, and waits until it answers. The folder is in BENCH_DIR, by default in the one for temporary
// files; for figures of a real disk it must be on one.
func launch(
	aof string, known []string, command func(port, dir string) (cmd *exec.Cmd, addr string, err error),
	ask func(ctx context.Context, addr string) error,
) (*server, error) {
	if known == nil {
		return nil, fmt.Errorf("expected durability off, everysec or always, found %q", aof)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	dir, err := os.MkdirTemp(os.Getenv("BENCH_DIR"), "bench")
	if err := errors.Join(err, l.Close()); err != nil {
		return nil, err
	}
	s := &server{dir: dir}
	if s.cmd, s.addr, err = command(port, dir); err == nil {
		s.release, err = startTied(s.cmd)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		err := ask(ctx, s.addr)
		if err == nil {
			return s, nil
		}
		if ctx.Err() != nil {
			s.stop()
			return nil, fmt.Errorf("%s did not answer within 20 s: %w", s.cmd.Path, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (s *server) stop() {
	if !s.quit || s.cmd.Process.Signal(syscall.SIGQUIT) != nil {
		_ = s.cmd.Process.Kill()
	}
	_ = s.cmd.Wait()
	s.release()
	_ = os.RemoveAll(s.dir)
}

// keepAwake keeps every core from going idle while bench takes figures of single round trips, with a busy loop at the
// lowest priority for each core: an idle core of a virtual machine sometimes takes tens of microseconds to wake, which
// makes such figures bimodal.
func keepAwake() (stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, f := range stops {
			f()
		}
	}
	for range runtime.NumCPU() {
		cmd := exec.Command("nice", "-n", "19", "sh", "-c", "while :; do :; done")
		release, err := startTied(cmd)
		if err != nil {
			stop()
			return nil, errors.Join(errors.New("keeping the cores awake needs nice and sh"), err)
		}
		stops = append(stops, func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			release()
		})
	}
	return stop, nil
}
