//go:build unix

package itest_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/itest/ledger"
	"github.com/godelayed/delayed/web"
)

// TestFailOverWithPythonAndDashboard makes a replica the master behind one address, again and again, while programs of
// Python enqueue and run tasks and the dashboard shows their events. TestFailOverBehindOneAddress of the root does so
// with Go.
func TestFailOverWithPythonAndDashboard(t *testing.T) {
	together(t)
	pair := redistest.StartPair(t)
	queue, dir := redistest.Name(t), t.TempDir()
	env := []string{"DELAYED_LEDGER=" + dir}
	worker := startPython(t, env, "matrix_worker.py", "--url", pair.URL(), "--queue", queue, "--life", "4")
	producer := startPython(t, env, "steady_producer.py", "--url", pair.URL(), "--queue", queue, "--prefix", "p")
	rdb, err := delayed.Dial(pair.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	page := openDashboard(t, rdb, queue)
	log := func() ledger.Log {
		l, err := ledger.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	goesOn := func() string {
		start, report := time.Now(), ""
		before := log()
		sent, ran, shown := len(before.Of("sent")), len(before.Of(ledger.End)), page.Load()
		left := map[string]func() bool{
			"enqueue": func() bool { return len(log().Of("sent")) > sent+1 },
			"run":     func() bool { return len(log().Of(ledger.End)) > ran+1 },
			"show":    func() bool { return page.Load() > shown+1 },
		}
		defer func() {
			if len(left) > 0 {
				t.Logf("%d do not go on:%s\nproducer:\n%s\nworker:\n%s", len(left), report, producer.Output(),
					worker.Output())
			}
		}()
		waitFor(t, "everything to go on", func() bool {
			for what, well := range left {
				if well() {
					report += fmt.Sprintf(" %s %v", what, time.Since(start).Round(10*time.Millisecond))
					delete(left, what)
				}
			}
			return len(left) == 0
		})
		return report
	}
	for i := range inChaos(2, 20) {
		goesOn()
		pair.Settled(t)
		pair.FailOver(t, i%2 == 0)
		t.Logf("fail-over %d:%s", i+1, goesOn())
	}
	stopPython(t, producer)
	waitFor(t, "all accepted tasks to have run", func() bool {
		l := log()
		var sent []string
		for task := range l.Of("sent").ByTask() {
			sent = append(sent, task)
		}
		return len(l.Of(ledger.End).Missing(sent)) == 0
	})
	stopPython(t, worker)
	redistest.CheckInvariants(t, pair.Master().Dial(t), queue, redistest.Invariants{})
	t.Logf("%d tasks of Python, %d errors of its producer", len(log().Of("sent")),
		strings.Count(producer.Output(), "refused"))
}

// openDashboard serves the dashboard on a handle, opens its stream of a queue's events, and counts them.
func openDashboard(t *testing.T, rdb *delayed.Store, queue string) *atomic.Int64 {
	t.Helper()
	h, err := web.New(rdb, web.Config{
		Tokens: []web.Token{{User: web.User{Name: "ann", Role: web.Admin}, Secret: dashboardToken}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(func() { h.Close(); s.Close(); s.Client().CloseIdleConnections() })
	shown := new(atomic.Int64)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v1/events?queue="+queue, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+dashboardToken)
	answer, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		t.Fatalf("events: %s: %s", answer.Status, text)
	}
	go func() {
		defer answer.Body.Close()
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "data: ") {
				shown.Add(1)
			}
		}
	}()
	return shown
}
