package rueidis

import (
	"os"
	"testing"

	"github.com/redis/rueidis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/redistest/sourcetest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

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
	for name, resp2 := range map[string]bool{"RESP2": true, "RESP3": false} {
		t.Run(name, func(t *testing.T) {
			sourcetest.Run(t, func(t testing.TB, addr string, poolSize int) delayed.Source {
				return dial(t, rueidis.ClientOption{
					InitAddress: []string{addr}, BlockingPoolSize: poolSize, AlwaysRESP2: resp2,
				})
			})
		})
	}
}

func TestCluster(t *testing.T) {
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
	sourcetest.RunSentinel(t, func(t testing.TB, addr string) delayed.Source {
		return dial(t, rueidis.ClientOption{
			InitAddress: []string{addr}, Sentinel: rueidis.SentinelOption{MasterSet: "m"},
		})
	})
}
