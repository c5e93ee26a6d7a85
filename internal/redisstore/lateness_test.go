package redisstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/metrics"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestLateness moves tasks that are due since different times, and reads how late that was.
func TestLateness(t *testing.T) {
	server := redistest.Shared(t)
	name := redistest.Name(t)
	conn := server.Dial(t)
	s := NewStore(dialled(t, server.URL()), "", name)
	now := redistest.Time(t, conn)
	lates := []time.Duration{
		0, 0, time.Second, time.Second, time.Minute, time.Minute + time.Second, time.Hour, 3 * time.Hour,
		40 * 24 * time.Hour, 100 * 24 * time.Hour,
	}
	due := redistest.Zset{}
	for i, late := range lates {
		due[fmt.Sprint("x", i)] = now - late.Milliseconds()
	}
	redistest.Seed(t, conn, name, filedAs("_retry", due))
	if n, _, _, err := s.Move(bg, ShelfRetry, MoveBatch); n != len(lates) || err != nil {
		t.Fatalf("%d tasks moved, %v", n, err)
	}
	took := time.Duration(redistest.Time(t, conn)-now+1) * time.Millisecond
	h, err := s.Lateness(bg)
	if err != nil || h.Count() != uint64(len(lates)) {
		t.Fatalf("%d tasks were late (%v), expected %d", h.Count(), err, len(lates))
	}
	least := 2*time.Second + 2*time.Minute + time.Second + 4*time.Hour + 40*24*time.Hour + 1<<42*time.Microsecond
	if h.Sum < least || h.Sum > least+time.Duration(len(lates))*took {
		t.Errorf("they were %v late together, expected %v and up to %v more for each", h.Sum, least, took)
	}
	// Each is in a bucket that has its lateness, or that after the time that moving took.
	var want metrics.Histogram
	for _, late := range lates {
		for bucket := range h.Counts {
			low := time.Duration(0)
			if bucket > 0 {
				low = metrics.Bound(bucket - 1)
			}
			fits := low <= late+took && min(late, 1<<42*time.Microsecond) < metrics.Bound(bucket)
			if fits && h.Counts[bucket] > want.Counts[bucket] {
				want.Counts[bucket]++
				break
			}
		}
	}
	if !slices.Equal(h.Counts[:], want.Counts[:]) {
		t.Errorf("found the counts %v, expected %v", h.Counts, want.Counts)
	}
	for field, value := range map[string]string{"x": "1", "999": "1", "3": "-1"} {
		server.Do(t, "HSET", name+"_metrics:late", field, value)
	}
	if again, err := s.Lateness(bg); err != nil || again != h {
		t.Errorf("with fields of strangers there are %v (%v), expected %v", again, err, h)
	}
}
