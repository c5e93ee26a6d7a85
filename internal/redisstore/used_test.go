package redisstore

import (
	"testing"

	"github.com/godelayed/delayed/internal/redistest"
)

// TestUsed finds a task wherever it is, and its remains.
func TestUsed(t *testing.T) {
	t.Parallel()
	for name, put := range map[string][]any{
		"pending":     {"RPUSH", "", "m"},
		"suspect":     {"RPUSH", "_suspects", "m"},
		"claimed":     {"HSET", "_processing:w", "1-1", "m"},
		"of legacy":   {"HSET", "_processing", "w", "m"},
		"scheduled":   {"ZADD", "_scheduled", 1, "id"},
		"retrying":    {"ZADD", "_retry", 1, "id"},
		"parked":      {"ZADD", "_parked", 1, "id"},
		"archived":    {"ZADD", "_archived", 1, "id"},
		"completed":   {"ZADD", "_completed", 1, "id"},
		"in a group":  {"ZADD", "_groups", 1, "g"},
		"periodic":    {"HSET", "_periodic", "entry", "e"},
		"counted":     {"HSET", "_stats:20250102", "processed", 1},
		"before":      {"HSET", "_stats:20241006", "processed", 1}, // 88 days ago
		"":            {"SET", "_sweeper", "w"},
		"by a worker": {"HSET", "_processing:other", "1-1", "m"},
	} {
		b := redistest.NewBench(t, redistest.Shared(t))
		s := fixedDay(NewStore(dialled(t, b.Server.URL()), "", b.Name))
		b.Do(put[0].(string), append([]any{b.Name + put[1].(string)}, put[2:]...)...) //nolint:errcheck // as above
		used, err := s.Used(t.Context(), "w")
		b.Must(err)
		if want := name != "" && name != "by a worker"; used != want {
			t.Errorf("%s: used %v, expected %v", name, used, want)
		}
	}
}
