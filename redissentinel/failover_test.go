//go:build unix

package redissentinel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/childproc"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/redistest/controltest"
)

// Passwords of the servers and of the Sentinel in these tests.
const (
	password         = "hunter2"
	sentinelPassword = "hunter3"
)

// watched is a master with a replica and the one Sentinel that watches them.
type watched struct {
	master, replica *redistest.Server
	sentinel        string // host and port
}

func startWatched(t *testing.T) *watched {
	t.Helper()
	// Redis waits five seconds for further replicas before it serves the first.
	atOnce := []string{"--repl-diskless-sync-delay", "0"}
	w := &watched{master: redistest.Start(t, atOnce...)}
	host, port, _ := strings.Cut(w.master.Addr(), ":")
	w.replica = redistest.Start(t, append(atOnce, "--replicaof", host, port)...)
	eventually(t, "the replica is connected", func() bool {
		info, err := redis.String(w.replica.Do(t, "INFO", "replication"), nil)
		return err == nil && strings.Contains(info, "master_link_status:up")
	})
	for _, s := range []*redistest.Server{w.replica, w.master} {
		s.Do(t, "CONFIG", "SET", "masterauth", password)
		s.Do(t, "CONFIG", "SET", "requirepass", password)
	}
	w.sentinel = startRealSentinel(t, w.master.Addr())
	return w
}

// startRealSentinel starts a Sentinel that takes a master for dead after 300 ms, and returns its address.
func startRealSentinel(t *testing.T, master string) string {
	t.Helper()
	program := os.Getenv("REDIS_SERVER")
	if program == "" {
		program = "redis-server"
	}
	host, port, _ := strings.Cut(master, ":")
	for range 20 {
		// Below the range that systems use for outgoing connections.
		addr := fmt.Sprintf("127.0.0.1:%d", 21000+rand.IntN(10000))
		l, err := net.Listen("tcp", addr)
		if err != nil {
			continue
		}
		l.Close()
		file := filepath.Join(t.TempDir(), "sentinel.conf")
		text := fmt.Sprintf("bind 127.0.0.1\nport %s\nrequirepass %s\nsentinel monitor m %s %s 1\nsentinel auth-pass "+
			"m %s\n"+
			"sentinel down-after-milliseconds m 300\nsentinel failover-timeout m 1000\n",
			strings.TrimPrefix(addr, "127.0.0.1:"), sentinelPassword, host, port, password)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		proc, err := childproc.Start(exec.Command(program, file, "--sentinel"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(proc.Kill)
		eventually(t, "the Sentinel answers", func() bool {
			_, err := ask(addr, sentinelPassword, "PING")
			return err == nil || !proc.Running()
		})
		if proc.Running() {
			return addr
		}
		if out := proc.Output(); !strings.Contains(out, "Address already in use") {
			t.Fatalf("the Sentinel ended: %s", out)
		}
	}
	t.Fatal("no free port for a Sentinel")
	return ""
}

// ask sends one command on a connection of its own.
func ask(addr, password, cmd string, args ...any) (any, error) {
	c, err := redis.Dial("tcp", addr, redis.DialPassword(password), redis.DialReadTimeout(10*time.Second))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Do(cmd, args...)
}

func (w *watched) url() string {
	return "redis://:" + password + "@" + w.sentinel + "/0?master=m&sentinel_password=" + sentinelPassword
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	w := startWatched(t)
	t.Run("WrongPasswords", func(t *testing.T) { testWrongPasswords(t, w) })
	t.Run("Control", func(t *testing.T) {
		rdb, err := Dial(w.url())
		if err != nil {
			t.Fatal(err)
		}
		defer rdb.Close()
		controltest.Run(t, rdb, "control")
	})
	t.Run("Failover", func(t *testing.T) { testFailover(t, w) })
}

// testFailover lets the master step down, and then kills its successor: commands go to whichever is the master.
func testFailover(t *testing.T, w *watched) {
	t.Helper()
	rdb, err := Dial(w.url())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rdb.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := rdb.Ping(t.Context()); !errors.Is(err, delayed.ErrClosed) {
			t.Errorf("Ping after Close: %v", err)
		}
	})
	if err := rdb.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
	src := open(t, w.url())
	carriesOn := startWorker(t, rdb)

	// Clients that write all the time, and one that waits for an element.
	var stop atomic.Bool
	var written atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for !stop.Load() {
				if err := write(src); err == nil {
					written.Add(1)
				} else {
					<-time.After(5 * time.Millisecond)
				}
			}
		})
	}
	defer wg.Wait()
	defer stop.Store(true)
	writes := func(what string) {
		before := written.Load()
		eventually(t, what, func() bool { return written.Load() > before+20 })
	}
	writes("clients write to the master")
	waiting := connTo(t, src)
	blocked := make(chan error, 1)
	go func() {
		_, err := redis.DoWithTimeout(waiting, 0, "BLPOP", "none", 0)
		blocked <- err
	}()
	long := connTo(t, src) // held for long, as a heartbeat holds its connection
	if _, err := long.Do("SET", "long", 1); err != nil {
		t.Fatal(err)
	}

	eventually(t, "the Sentinel agrees to a fail-over", func() bool {
		_, err := ask(w.sentinel, sentinelPassword, "SENTINEL", "FAILOVER", "m")
		return err == nil
	})
	start := time.Now()
	eventually(t, "the replica is the master of new connections", func() bool { return serves(src, w.replica) })
	if took := time.Since(start); took > 8*time.Second {
		limits.Errorf(t, "the new master was found after %v: expected that the Sentinel's announcement is heard", took)
	}
	if err := receive(t, "the end of BLPOP on the old master", blocked); err == nil {
		t.Error("BLPOP on the old master returned without an error")
	}
	eventually(t, "a connection that is held reports that it is of no use", func() bool {
		_, err := long.Do("SET", "long", 2)
		return err != nil && long.Err() != nil
	})
	writes("clients write to the new master")
	carriesOn()
	// The Sentinel would see to it within ten seconds.
	host, port, _ := strings.Cut(w.replica.Addr(), ":")
	if _, err := ask(w.master.Addr(), password, "REPLICAOF", host, port); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the old master follows the new one", func() bool {
		info, err := redis.String(ask(w.master.Addr(), password, "INFO", "replication"))
		return err == nil && strings.Contains(info, "role:slave") && strings.Contains(info, "master_link_status:up")
	})

	w.replica.Kill(t)
	eventually(t, "the first server is the master again", func() bool { return serves(src, w.master) })
	writes("clients write to the first server")
	carriesOn()
	if err := rdb.Ping(t.Context()); err != nil {
		t.Errorf("Ping after two fail-overs: %v", err)
	}
}

// started has the arguments of the tasks that run.
var started = make(chan int, 100)

func note(n int) { started <- n }

// startWorker starts a worker and returns a function that sees whether it runs a new task.
func startWorker(t *testing.T, rdb *delayed.Store) (carriesOn func()) {
	t.Helper()
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"failover"}, Concurrency: 1,
		Logger: delayed.SlogLogger(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Register(note); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := receive(t, "the end of the worker", ended); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	q, n := delayed.NewQueue("failover", rdb), 0
	return func() {
		t.Helper()
		n++
		eventually(t, "a task is enqueued", func() bool {
			_, err := q.Delay(note, n)
			return err == nil
		})
		for got := 0; got != n; {
			got = receive(t, fmt.Sprintf("task %d", n), started)
		}
	}
}

// write writes on a connection of the pool.
func write(src *source) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c, err := src.Conn(ctx, "n")
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = redis.DoContext(c, ctx, "INCR", "n")
	return err
}

// serves reports whether a new connection leads to the server.
func serves(src *source, server *redistest.Server) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c, err := src.Conn(ctx, "n")
	if err != nil {
		return false
	}
	defer c.Close()
	info, err := redis.String(c.Do("INFO", "server"))
	return err == nil && strings.Contains(info, "tcp_port:"+strings.TrimPrefix(server.Addr(), "127.0.0.1:")+"\r\n")
}

// testWrongPasswords expects errors that name neither the right nor the wrong ones.
func testWrongPasswords(t *testing.T, w *watched) {
	t.Helper()
	for _, url := range []string{
		"redis://:hunter4@" + w.sentinel + "/0?master=m&sentinel_password=" + sentinelPassword,
		"redis://:" + password + "@" + w.sentinel + "/0?master=m&sentinel_password=hunter4",
		"redis://:" + password + "@" + w.sentinel + "/0?master=m",
		"redis://" + w.sentinel + "/0?master=m&sentinel_password=" + sentinelPassword,
	} {
		_, err := open(t, url).Conn(t.Context(), "k")
		if err == nil {
			t.Errorf("%s: expected an error", url)
			continue
		}
		if text := err.Error(); !strings.Contains(text, "WRONGPASS") && !strings.Contains(text, "NOAUTH") ||
			strings.Contains(text, "hunter") {
			t.Errorf("%s: %s", url, text)
		}
	}
}
