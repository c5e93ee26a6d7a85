package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/web"
)

// follow reads the events at an address until the test ends or stop is called. The channel is closed at their end.
func (b *bench) follow(server *httptest.Server, r web.Role, query string) (events chan map[string]any, stop func()) {
	b.T.Helper()
	ctx, stop := context.WithCancel(bg)
	b.T.Cleanup(stop)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/api/v1/events"+query, nil)
	b.Must(err)
	req.Header.Set("Authorization", "Bearer "+secret(r))
	answer, err := server.Client().Do(req)
	b.Must(err)
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		b.T.Fatalf("events%s answer %d", query, answer.StatusCode)
	}
	events = make(chan map[string]any, 10_000)
	go func() {
		defer close(events)
		defer answer.Body.Close()
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var v map[string]any
				if json.Unmarshal([]byte(data), &v) == nil {
					events <- v
				}
			}
		}
	}()
	return events, stop
}

// await returns the first event that is about a task.
func (b *bench) await(events chan map[string]any, id string) (found map[string]any) {
	b.T.Helper()
	b.Until("an event of task "+id, func() bool {
		select {
		case found = <-events:
			return found["id"] == id
		default:
			return false
		}
	})
	return found
}

// TestAPIEvents follows events in several ways, and counts how many watch for them.
func TestAPIEvents(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *web.Config) { c.HideArguments = true })
	server := httptest.NewServer(b.h)
	t.Cleanup(server.Close)
	b.work(delayed.WorkerConfig{}, failSecretly, sumOf)
	var all []chan map[string]any
	for range 5 {
		events, _ := b.follow(server, web.Operator, "")
		all = append(all, events)
	}
	failed, _ := b.follow(server, web.Operator, "?kind=failed&function=failSecretly")
	hidden, stop := b.follow(server, web.Viewer, "?queue=mail&queue=mail")
	if sets, clients := b.h.Followed(); sets != 2 || clients != 7 {
		t.Errorf("%d sets of queues are followed for %d clients, expected 2 for 7", sets, clients)
	}
	// Workers publish events as soon as they know that somebody follows.
	b.Until("the workers publish events", func() bool {
		_, err := b.q.With(delayed.TaskID("first"), delayed.OnConflict(delayed.ConflictSkip)).Delay(sumOf, int64(1))
		b.Must(err)
		return len(all[0]) > 0 && len(hidden) > 0
	})
	_, err := b.q.With(delayed.TaskID("bad")).Delay(failSecretly, "x")
	b.Must(err)
	for _, events := range all {
		b.same(b.await(events, "bad"), `"mail"`, "queue")
	}
	e := b.await(failed, "bad")
	b.same(e, `"task failed"`, "kind")
	b.same(e, `"a secret error"`, "error")
	for {
		e := b.await(hidden, "bad")
		if e["error"] != nil {
			t.Errorf("the viewer sees %v", e)
		}
		if e["kind"] == "task failed" {
			break
		}
	}
	stop()
	b.Until("the viewer has gone", func() bool { sets, clients := b.h.Followed(); return sets == 1 && clients == 6 })
	b.Must(b.h.Close())
	b.Until("the events end", func() bool { _, open := <-failed; return !open })
	if sets, clients := b.h.Followed(); sets != 0 || clients != 0 {
		t.Errorf("%d sets are followed for %d clients after the end", sets, clients)
	}
}
