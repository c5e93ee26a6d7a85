package inspect_test

import (
	"testing"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// TestWorkerInShort: what lists show of a worker.
func TestWorkerInShort(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	alive := []inspect.WorkerQueue{{Name: "a", Claims: 3}, {Name: "b", Alive: time.Second, Claims: 4}}
	for _, tt := range []struct {
		condition string
		claims    int
		longest   string
		w         inspect.Worker
	}{
		{"dead", 0, "", inspect.Worker{}},
		{"dead", 3, "", inspect.Worker{Queues: alive[:1], State: state.Running}},
		{"alive", 7, "", inspect.Worker{Queues: alive}},
		{"stopping", 7, "old", inspect.Worker{Queues: alive, State: state.Stopping, Running: []inspect.Running{
			{ID: "new", Started: at},
			{ID: "old", Started: at.Add(-time.Hour)},
			{ID: "mid", Started: at.Add(-time.Minute)},
		}}},
	} {
		id := ""
		if r := tt.w.Longest(); r != nil {
			id = r.ID
		}
		if got := tt.w.Condition(); got != tt.condition || tt.w.Claims() != tt.claims || id != tt.longest {
			t.Errorf("%+v: %s with %d claims, %q runs longest", tt.w, got, tt.w.Claims(), id)
		}
	}
}
