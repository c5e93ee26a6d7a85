package desk

import (
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/delayedtest"

	"example.com/app/blind/nearmisses/jobs"
	"example.com/app/blind/nearmisses/loans"
	"example.com/app/blind/nearmisses/notify"
)

func TestDesk(t *testing.T) {
	q := delayedtest.NewQueue(t)
	d := Desk{queue: q, failed: make(chan error, 1)}
	if _, err := d.Open(t.Context(), "c1", false); err != nil {
		t.Fatal(err)
	}
	if err := <-d.failed; err != nil {
		t.Fatal(err)
	}
	delayedtest.RequireEnqueued(t, q, notify.Later, delayedtest.Any, time.Hour)    // right: Any equals all
	delayedtest.RequireEnqueued(t, q, (*notify.Desk).Call, delayedtest.AnyArgs)    // right: so do AnyArgs
	delayedtest.RequireCount(t, q, 2, loans.Sweep)                                 // right: a number comes first
	delayedtest.RefuteEnqueued(t, q, loans.Prolong, uint8(2), 14)                  // right: an integer that fits
	delayedtest.RefuteEnqueued(t, q, delayed.NewPyTask("library:sweep", nil, nil)) // right: a task without arguments
	fns := append(jobs.Loans(), notify.NewDesk("first", q), notify.Later)
	delayedtest.Drain(t, q, fns...)
}

func TestTypedNil(t *testing.T) {
	q := delayedtest.NewQueue(t)
	for _, since := range []*time.Time{nil, {}} {
		if _, err := q.Delay(loans.Fine, "c1", 100, 0.5, since); err != nil { // right: a pointer
			t.Error(err)
		}
	}
	if err := Numbers(t.Context(), q, 3, 4, time.Minute); err != nil {
		t.Error(err)
	}
	if err := Values(t.Context(), q, []string{"c2"}, loans.Loan{Card: "c1"}); err != nil {
		t.Error(err)
	}
	if err := Gather(t.Context(), q, "c1", "c2"); err != nil {
		t.Error(err)
	}
	if err := Batch(t.Context(), q); err != nil {
		t.Error(err)
	}
	if !Refused(q) {
		t.Error("expected a refusal of shelf 256")
	}
}
