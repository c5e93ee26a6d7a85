//go:build unix

package rueidis

import (
	"os"
	"testing"

	"github.com/redis/rueidis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/redistest/sourcetest"
)

func TestMain(m *testing.M) {
	redistest.SideBySide()
	os.Exit(redistest.Main(m))
}

func dial(t testing.TB, opt rueidis.ClientOption) delayed.Source {
	t.Helper()
	opt.DisableCache = opt.AlwaysRESP2
	client, err := rueidis.NewClient(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return newSource(client)
}

// TestSource runs the tests of all sources with both versions of Redis's protocol.
func TestSource(t *testing.T) {
	t.Parallel()
	makers := map[string]sourcetest.Maker{}
	for name, resp2 := range map[string]bool{"RESP2": true, "RESP3": false} {
		makers[name] = func(t testing.TB, addr string, poolSize int) delayed.Source {
			return dial(t, rueidis.ClientOption{
				InitAddress: []string{addr}, BlockingPoolSize: poolSize, AlwaysRESP2: resp2,
			})
		}
	}
	sourcetest.Run(t, makers)
}

func TestCluster(t *testing.T) {
	t.Parallel()
	sourcetest.RunCluster(t, func(t testing.TB, addrs []string) delayed.Source {
		return dial(t, rueidis.ClientOption{InitAddress: addrs})
	})
}

// BenchmarkBesideRedigo compares with the connections of delayed.Dial.
func BenchmarkBesideRedigo(b *testing.B) {
	sourcetest.Compare(b, func(t testing.TB, addr string, poolSize int) delayed.Source {
		return dial(t, rueidis.ClientOption{InitAddress: []string{addr}, BlockingPoolSize: poolSize})
	})
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	sourcetest.RunSentinel(t, func(t testing.TB, addr string) delayed.Source {
		return dial(t, rueidis.ClientOption{
			InitAddress: []string{addr}, Sentinel: rueidis.SentinelOption{MasterSet: "m"},
		})
	})
}

// TestClientIsThePrograms closes a handle, which leaves the client open.
func TestClientIsThePrograms(t *testing.T) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{redistest.Shared(t).Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	rdb := New(client)
	if err := rdb.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Close(); err != nil {
		t.Error(err)
	}
	if err := client.Do(t.Context(), client.B().Ping().Build()).Error(); err != nil {
		t.Errorf("the client after the handle was closed: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("New(nil) does not panic")
		}
	}()
	New(nil)
}
