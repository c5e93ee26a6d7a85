package goredis

import (
	"os"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/redistest/sourcetest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// TestSource runs the tests of all sources with both versions of Redis's protocol.
func TestSource(t *testing.T) {
	for name, protocol := range map[string]int{"RESP2": 2, "RESP3": 3} {
		t.Run(name, func(t *testing.T) {
			sourcetest.Run(t, func(t testing.TB, addr string, poolSize int) delayed.Source {
				client := goredis.NewClient(&goredis.Options{Addr: addr, PoolSize: poolSize, Protocol: protocol})
				t.Cleanup(func() { client.Close() })
				return newSource(client)
			})
		})
	}
}

func TestCluster(t *testing.T) {
	sourcetest.RunCluster(t, func(t testing.TB, addrs []string) delayed.Source {
		client := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: addrs})
		t.Cleanup(func() { client.Close() })
		return newSource(client)
	})
}

// BenchmarkBesideRedigo compares with the connections of delayed.Dial.
func BenchmarkBesideRedigo(b *testing.B) {
	sourcetest.Compare(b, func(t testing.TB, addr string, poolSize int) delayed.Source {
		client := goredis.NewClient(&goredis.Options{Addr: addr, PoolSize: poolSize})
		t.Cleanup(func() { client.Close() })
		return newSource(client)
	})
}

func TestSentinel(t *testing.T) {
	sourcetest.RunSentinel(t, func(t testing.TB, addr string) delayed.Source {
		client := goredis.NewFailoverClient(&goredis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{addr}})
		t.Cleanup(func() { client.Close() })
		return newSource(client)
	})
}
