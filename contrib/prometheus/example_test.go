package delayedprom_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/godelayed/delayed"
	delayedprom "github.com/godelayed/delayed/contrib/prometheus"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/scale"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/workermain"
)

// exampleTB lets the example, which has no testing.T, use the tests' server.
type exampleTB struct{ testing.TB }

func (exampleTB) Helper()                           {}
func (exampleTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// redisURL stands for the address of a Redis server.
func redisURL() string { return redistest.Shared(exampleTB{}).URL() }

// Welcome sends a mail.
func Welcome(id int) {}

// A worker program that serves /metrics for Prometheus and /scale for autoscalers, beside its health checks, at the
// address of its flag -listen. Programs leave out Args, which are flags here, and end with os.Exit(code).
func Example_workermain() {
	code := workermain.Run(workermain.Config{
		Functions: []any{Welcome},
		Serve: func(mux *http.ServeMux, rdb *delayed.Store) error {
			ins, err := inspect.New(rdb, inspect.Config{})
			if err != nil {
				return err
			}
			reg := prometheus.NewRegistry()
			reg.MustRegister(delayedprom.New(ins, delayedprom.Config{}))
			mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
			mux.Handle("GET /scale", scale.Handler(ins, scale.Config{Target: 30 * time.Second}))
			fmt.Println("serving")
			return nil
		},
		Args: []string{
			"-redis", redisURL(), "-prefix", "example-main:", "-queues", "mail", "-listen", "localhost:0", "-once",
		},
	})
	fmt.Println("exit code", code)
	// Output:
	// serving
	// exit code 0
}

// Serve the metrics of all queues.
func Example() {
	handle, err := delayed.Dial(redisURL())
	if err != nil {
		panic(err)
	}
	defer handle.Close()
	rdb := handle.WithPrefix("example:")
	ins, err := inspect.New(rdb, inspect.Config{})
	if err != nil {
		panic(err)
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(delayedprom.New(ins, delayedprom.Config{Queues: []string{"mail"}}))
	server := httptest.NewServer(promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	defer server.Close()

	if _, err := delayed.NewQueue("mail", rdb).Delay(Welcome, 42); err != nil {
		panic(err)
	}
	resp, err := http.Get(server.URL)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "delayed_tasks{") {
			fmt.Println(lines.Text())
		}
	}
	// Output:
	// delayed_tasks{queue="mail",state="active"} 0
	// delayed_tasks{queue="mail",state="aggregating"} 0
	// delayed_tasks{queue="mail",state="archived"} 0
	// delayed_tasks{queue="mail",state="completed"} 0
	// delayed_tasks{queue="mail",state="parked"} 0
	// delayed_tasks{queue="mail",state="pending"} 1
	// delayed_tasks{queue="mail",state="retry"} 0
	// delayed_tasks{queue="mail",state="scheduled"} 0
}
