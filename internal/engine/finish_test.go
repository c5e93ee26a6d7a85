package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// Endings that are sent in one call count each under its own outcome.
func TestEndingsAreCountedByThemselves(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(int) {})
	w, err := NewWorker(b.rdb, b.config())
	if err != nil {
		t.Fatal(err)
	}
	l := w.lanes[0]
	if _, err := redis.String(b.Conn.Do("SET", b.Name+"_worker:"+w.ID(), "v", "PX", 60000)); err != nil {
		t.Fatal(err)
	}
	ends := []lifecycle.Outcome{
		lifecycle.OutcomeRetry,
		lifecycle.OutcomePostpone,
		lifecycle.OutcomeExpire,
		lifecycle.OutcomeRetry,
		lifecycle.OutcomeSnooze,
		lifecycle.OutcomeArchive,
		lifecycle.OutcomeReject,
		lifecycle.OutcomeExpire,
	}
	for i := range ends {
		b.delay(f, i)
	}
	claims, _, err := l.Claim(t.Context(), redisstore.ClaimCall{Most: len(ends)}, nil)
	if err != nil || len(claims) != len(ends) {
		t.Fatalf("%d claims, %v", len(claims), err)
	}
	endings := make([]lane.Ending, len(ends))
	for i, e := range ends {
		endings[i] = lane.Ending{
			Claim: claims[i], Outcome: e, Wait: time.Hour, ID: fmt.Sprint(i),
			Message: claims[i].Raw, Info: (&wire.Info{}).Encode(),
		}
	}
	if left, _ := finisherOf(l).Flush(endings); len(left) != 0 {
		t.Fatalf("%d endings are left", len(left))
	}
	want := map[string]int{"processed": 3, "failed": 3, "retried": 3, "archived": 4, "expired": 2, "snoozed": 1}
	if got := b.counters(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("counters %v, expected %v", got, want)
	}
	if r, a, s := b.Size("_retry"), b.Size("_archived"), b.Size("_scheduled"); r != 3 || a != 4 || s != 1 {
		t.Errorf("%d, %d and %d tasks are retried, archived and scheduled", r, a, s)
	}
}
