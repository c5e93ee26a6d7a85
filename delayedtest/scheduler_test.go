package delayedtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/delayedtest"
)

// TestSchedulerGoesByTheClockOfRedis: what is due by that is enqueued, although the clock of the process says that
// there are two hours left.
func TestSchedulerGoesByTheClockOfRedis(t *testing.T) {
	t.Parallel()
	rdb := delayedtest.NewRedis(t)
	q := delayed.NewQueue("test", rdb)
	s, err := delayed.NewScheduler(rdb, delayed.SchedulerConfig{Queue: "test", Owner: "o", Entries: []delayed.Entry{
		{Name: "e", Spec: "@every 1h", Task: delayed.Call(ping)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	until := func(what string, done func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !done(); {
			if time.Now().After(deadline) {
				t.Fatalf("waited in vain until %s", what)
			}
			<-time.After(time.Millisecond) // between two looks
		}
	}
	until("the entry is declared", func() bool {
		entries, err := q.Periodic().List(t.Context())
		return err == nil && len(entries) == 1
	})
	delayedtest.RequireEmpty(t, q)
	delayedtest.Advance(t, q, 2*time.Hour)
	// Schedulers hear of changes, and look.
	other := delayed.Entry{Name: "other", Spec: "@yearly", Task: delayed.Call(welcome, 1, "en")}
	if err := q.Periodic().Set(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	until("the ticks are enqueued", func() bool { return len(delayedtest.Tasks(t, q)) > 0 })
	delayedtest.RequireCount(t, q, 1, ping) // the latest of those that were missed
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
