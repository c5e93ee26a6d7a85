//go:build unix

package goredis

import (
	"os"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/redistest/sourcetest"
)

func TestMain(m *testing.M) {
	redistest.SideBySide()
	os.Exit(redistest.Main(m))
}

// TestSource runs the tests of all sources with both versions of Redis's protocol.
func TestSource(t *testing.T) {
	t.Parallel()
	makers := map[string]sourcetest.Maker{}
	for name, protocol := range map[string]int{"RESP2": 2, "RESP3": 3} {
		makers[name] = func(t testing.TB, addr string, poolSize int) delayed.Source {
			client := goredis.NewClient(&goredis.Options{Addr: addr, PoolSize: poolSize, Protocol: protocol})
			t.Cleanup(func() { client.Close() })
			return newSource(client)
		}
	}
	sourcetest.Run(t, makers)
}

func TestCluster(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	sourcetest.RunSentinel(t, func(t testing.TB, addr string) delayed.Source {
		client := goredis.NewFailoverClient(&goredis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{addr}})
		t.Cleanup(func() { client.Close() })
		return newSource(client)
	})
}

// TestClientIsThePrograms closes a handle, which leaves the client open.
func TestClientIsThePrograms(t *testing.T) {
	client := goredis.NewClient(&goredis.Options{Addr: redistest.Shared(t).Addr()})
	defer client.Close()
	rdb := New(client)
	if err := rdb.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Close(); err != nil {
		t.Error(err)
	}
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the client after the handle was closed: %v", err)
	}
	ring := goredis.NewRing(&goredis.RingOptions{})
	defer ring.Close()
	for _, wrong := range []goredis.UniversalClient{nil, (*goredis.Client)(nil), (*goredis.ClusterClient)(nil), ring} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("New(%T) does not panic", wrong)
				}
			}()
			New(wrong)
		}()
	}
}
