package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// server is the store for one measurement: a redis-server, or the result of a peer's start.
type server struct {
	cmd  *exec.Cmd
	addr string // host:port, or a URL
	dir  string // removed at the end; may be empty
	halt func() // stops a server that must not be killed; nil kills it

	release func() // from startTied; may be nil
}

// The settings of durability: no append-only file, one that is synced every second, one that is synced after every
// command.
const (
	aofOff      = "off"
	aofEverysec = "everysec"
	aofAlways   = "always"
)

func errDurability(aof string) error {
	return fmt.Errorf("expected durability off, everysec or always, found %q", aof)
}

func serverBinary() string { return cmp.Or(os.Getenv("REDIS_SERVER"), "redis-server") }

func serverVersion() (string, error) {
	out, err := exec.Command(serverBinary(), "--version").Output()
	if err != nil {
		return "", fmt.Errorf("redis-server is needed; install it with `make setup` or set REDIS_SERVER: %w", err)
	}
	for field := range strings.FieldsSeq(string(out)) {
		if version, ok := strings.CutPrefix(field, "v="); ok {
			return version, nil
		}
	}
	return strings.TrimSpace(string(out)), nil
}

// freePort returns a port of the loopback interface on which no program listens.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port, l.Close()
}

// startServer starts a redis-server on a free port, with the given durability and further options. Its files are in
// BENCH_DIR, by default the folder for temporary files; for figures of a real disk it must be on one.
func startServer(aof string, options ...string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(os.Getenv("BENCH_DIR"), "bench")
	if err != nil {
		return nil, err
	}
	args := []string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", dir, "--loglevel", "warning"}
	switch aof {
	case aofOff:
		args = append(args, "--appendonly", "no")
	case aofEverysec, aofAlways:
		args = append(args, "--appendonly", "yes", "--appendfsync", aof, "--auto-aof-rewrite-percentage", "0")
	default:
		return nil, errDurability(aof)
	}
	s := &server{addr: "127.0.0.1:" + port, dir: dir, cmd: exec.Command(serverBinary(), append(args, options...)...)}
	if s.release, err = startTied(s.cmd); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		conn, err := redis.Dial("tcp", s.addr)
		if err == nil {
			_, err = conn.Do("PING")
			conn.Close()
			if err == nil {
				return s, nil
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.stop()
	return nil, errors.New("redis-server did not answer within 10 s")
}

func (s *server) stop() {
	if s.halt != nil {
		s.halt()
	} else {
		_ = s.cmd.Process.Kill()
	}
	_ = s.cmd.Wait()
	if s.release != nil {
		s.release()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}
