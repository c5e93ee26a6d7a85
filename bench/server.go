package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// server is a redis-server of one figure's own.
type server struct {
	cmd  *exec.Cmd
	addr string
	dir  string
}

func serverBinary() string {
	if path := os.Getenv("REDIS_SERVER"); path != "" {
		return path
	}
	return "redis-server"
}

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

// startServer starts a server that saves nothing, on a free port of the loopback interface.
func startServer() (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if err := l.Close(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	s := &server{addr: "127.0.0.1:" + port, dir: dir}
	s.cmd = exec.Command(serverBinary(), "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir)
	if err := s.cmd.Start(); err != nil {
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
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = os.RemoveAll(s.dir)
}
