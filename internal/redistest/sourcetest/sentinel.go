//go:build unix

package sourcetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/childproc"
	"github.com/godelayed/delayed/internal/redistest"
)

// RunSentinel runs the test of sources for Sentinel. open returns a source over a client that asks the Sentinel at
// addr for the master "m". It is closed at the end of the test.
func RunSentinel(t *testing.T, open func(t testing.TB, addr string) delayed.Source) {
	master, replica := redistest.Start(t), redistest.Start(t)
	host, port, _ := strings.Cut(master.Addr(), ":")
	replica.Do(t, "REPLICAOF", host, port)
	b := redistest.NewBench(t, replica)
	b.Until("the replica is in touch", func() bool {
		info, err := redis.String(replica.Do(t, "INFO", "replication"), nil)
		return err == nil && strings.Contains(info, "master_link_status:up")
	})
	addr := sentinel(b, host, port)
	ask := func(args ...any) ([]any, error) {
		conn, err := redis.Dial("tcp", addr)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		return redis.Values(conn.Do("SENTINEL", args...))
	}
	b.Until("the Sentinel knows the replica", func() bool {
		list, err := ask("REPLICAS", "m")
		return len(list) == 1 && err == nil
	})
	rdb := handle(b, open(t, addr))
	q := delayed.NewQueue(b.Name, rdb)
	stop := worker(b, rdb, 4)
	_, err := q.DelayContext(t.Context(), Mark, b.Name, 0)
	b.Must(err)
	b.Until("a task has run", func() bool { n, _ := ran(b.Name); return n == 1 })
	master.Kill(t)
	sent := 1
	b.Until("the replica takes tasks", func() bool {
		_, err := q.DelayContext(t.Context(), Mark, b.Name, sent)
		if err == nil {
			sent++
		}
		return sent > 5
	})
	b.Until("the tasks have run", func() bool { n, _ := ran(b.Name); return n >= sent })
	stop()
}

// sentinel starts a Sentinel that takes a master for dead after 300 ms, and returns its address.
func sentinel(b *redistest.Bench, host, port string) string {
	b.T.Helper()
	program := os.Getenv("REDIS_SERVER")
	if program == "" {
		program = "redis-server"
	}
	for range 20 {
		// Below the range that systems use for outgoing connections.
		addr := fmt.Sprintf("127.0.0.1:%d", 21000+rand.IntN(10000))
		l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
		if err != nil {
			continue
		}
		l.Close()
		file := filepath.Join(b.T.TempDir(), "sentinel.conf")
		b.Must(os.WriteFile(file, fmt.Appendf(nil, "bind 127.0.0.1\nport %s\nsentinel monitor m %s %s 1\n"+
			"sentinel down-after-milliseconds m 300\nsentinel failover-timeout m 1000\n",
			strings.TrimPrefix(addr, "127.0.0.1:"), host, port), 0o600))
		proc, err := childproc.Start(exec.Command(program, file, "--sentinel"))
		b.Must(err)
		b.T.Cleanup(proc.Kill)
		b.Until("the Sentinel answers", func() bool {
			conn, err := redis.Dial("tcp", addr)
			if err == nil {
				conn.Close()
			}
			return err == nil || !proc.Running()
		})
		if proc.Running() {
			return addr
		}
	}
	b.T.Fatal("no free port for a Sentinel")
	return ""
}
