package document

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/state"
)

// text returns a document as it is written.
func text(t *testing.T, v any) string {
	t.Helper()
	b, err := call.JSON(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTask(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 31, 13, 0, 0, 0, time.FixedZone("", 3600))
	task := inspect.Task{Queue: "mail", State: state.Retry, ID: "a", EnqueuedAt: at, Done: 1}
	task.Args, task.Result = []any{[]byte("x"), map[any]any{int64(1): at}}, []byte("r")
	got := text(t, TaskOf(&task))
	for _, want := range []string{
		`"args":["eA==",{"1":"2026-01-31T12:00:00Z"}]`, `"result":"cg=="`, `"enqueued_at":"2026-01-31T12:00:00Z"`,
		`"due":null`, `"progress":{"done":1,"total":0,"note":""}`, `"state":"retry"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s has no %s", got, want)
		}
	}
	if strings.Contains(got, "options") {
		t.Errorf("%s has options", got)
	}
	task.Options.Timeout = 1500 * time.Millisecond
	if got := text(t, TaskOf(&task)); !strings.Contains(got, `"options":{"timeout_seconds":1.5}`) {
		t.Errorf("%s has no timeout", got)
	}
	if got := text(t, FoundOf(nil)); got != `{"tasks":[]}` {
		t.Errorf("no tasks are %s", got)
	}
}

func TestQueue(t *testing.T) {
	t.Parallel()
	broken := inspect.Queue{Name: "mail", Err: errors.New("inspect: the key is a set")}
	if got := QueueOf(&broken); got.Error != "the key is a set" {
		t.Errorf("the error is %q", got.Error)
	}
	queues := []inspect.Queue{{Pending: 2, Paused: time.Now(), Latency: time.Second}, {Pending: 3, Groups: 1}}
	queues[1].Today.Failed = 4
	s := StatsOf(queues, []inspect.Worker{{}, {Queues: []inspect.WorkerQueue{{Alive: time.Second}}}})
	if s.States["pending"] != 5 || s.Paused != 1 || s.LatencySeconds != 1 || s.Today.Failed != 4 || s.Groups != 1 ||
		s.Workers != 1 || s.Queues != 2 {
		t.Errorf("the sum is %+v", s)
	}
}

func TestParsePer(t *testing.T) {
	t.Parallel()
	if p, err := ParsePer("minutes", 0); err != nil || p.Last != time.Hour {
		t.Errorf("found %v, %v", p, err)
	}
	if p, err := ParsePer("day", 24*time.Hour); err != nil || p.Last != 24*time.Hour {
		t.Errorf("found %v, %v", p, err)
	}
	for name, last := range map[string]time.Duration{"year": 0, "minute": time.Second, "second": 2 * time.Hour} {
		_, err := ParsePer(name, last)
		var wrong *PerError
		if !errors.As(err, &wrong) || wrong.Last != (last != 0) || !strings.Contains(err.Error(), "expected") {
			t.Errorf("%s %v: found %v", name, last, err)
		}
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	e := inspect.Event{Kind: event.TaskFailed, Queue: "mail", Took: time.Second, Missed: 3, Error: "x"}
	if got := EventOf(&e); got.Kind != "task failed" || *got.Took != 1 || got.Wait != nil {
		t.Errorf("found %+v", got)
	}
	if got := MissedOf(&e); got.Kind != KindMissed || got.Missed != 3 || got.Error != "" {
		t.Errorf("found %+v", got)
	}
	for part, want := range map[string]bool{
		"failed": true, "task_failed": true, "Task-Failed": true, "": false, "x": false,
	} {
		if KindMatches("task failed", part) != want {
			t.Errorf("%q: expected %v", part, want)
		}
	}
	if kinds := EventKinds(); len(kinds) < 10 {
		t.Errorf("the kinds are %v", kinds)
	}
}
