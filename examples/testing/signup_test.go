package signup_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/delayedtest"
	signup "github.com/godelayed/delayed/examples/testing"
)

// mailer returns a Mailer on a queue of its own, and what it has sent.
func mailer(t *testing.T) (m *signup.Mailer, sent *[]string) {
	t.Helper()
	sent = new([]string)
	send := func(_, text string) error {
		*sent = append(*sent, text)
		return nil
	}
	return &signup.Mailer{Send: send, Queue: delayedtest.NewQueue(t)}, sent
}

// TestEnqueued asks what a call has delayed. Nothing runs.
func TestEnqueued(t *testing.T) {
	t.Parallel()
	q := delayedtest.NewQueue(t)
	if err := signup.SignUp(t.Context(), q, "ann"); err != nil {
		t.Fatal(err)
	}
	delayedtest.RequireEnqueued(t, q, (*signup.Mailer).Welcome, "ann")
	delayedtest.RefuteEnqueued(t, q, (*signup.Mailer).Welcome, "bob")
	delayedtest.RequireCount(t, q, 1, (*signup.Mailer).Remind, "ann", delayedtest.Any)

	reminder := delayedtest.RequireEnqueued(t, q, (*signup.Mailer).Remind, delayedtest.AnyArgs)
	if in := reminder.Due.Sub(delayedtest.Now(t, q)); in != 24*time.Hour || *reminder.MaxRetry != 5 {
		t.Errorf("expected a reminder in 24 h with five retries, found one in %v: %+v", in, reminder)
	}
}

// TestDrain runs everything to its end, three days in no time.
func TestDrain(t *testing.T) {
	t.Parallel()
	m, sent := mailer(t)
	if err := signup.SignUp(t.Context(), m.Queue, "ann"); err != nil {
		t.Fatal(err)
	}
	delayedtest.Drain(t, m.Queue, m)
	want := []string{"Welcome, ann", "Reminder 1, ann", "Reminder 2, ann", "Reminder 3, ann"}
	if !slices.Equal(*sent, want) {
		t.Errorf("expected %q, found %q", want, *sent)
	}
}

// TestRetry lets the mail server fail at first. Run returns what Drain would complain about.
func TestRetry(t *testing.T) {
	t.Parallel()
	m, _ := mailer(t)
	down := errors.New("the mail server is down")
	attempts := 0
	m.Send = func(_, _ string) error {
		if attempts++; attempts < 3 {
			return down
		}
		return nil
	}
	if _, err := m.Queue.Delay((*signup.Mailer).Welcome, "ann"); err != nil {
		t.Fatal(err)
	}
	result := delayedtest.Run(t, delayedtest.RunConfig{Queues: []*delayed.Queue{m.Queue}, Funcs: []any{m}})
	if len(result.Calls) != 3 || len(result.Archived) != 0 || !errors.Is(result.Err(), down) {
		t.Errorf("expected two failures and a success, found %+v", result)
	}
}

// TestInline runs what is delayed before Delay returns.
func TestInline(t *testing.T) {
	t.Parallel()
	m, sent := mailer(t)
	delayedtest.Inline(t, m.Queue, m)
	if err := signup.SignUp(t.Context(), m.Queue, "ann"); err != nil {
		t.Fatal(err)
	}
	if want := []string{"Welcome, ann"}; !slices.Equal(*sent, want) {
		t.Errorf("expected %q, found %q", want, *sent)
	}
}

// TestRedisIsFull asks what becomes of a user while Redis takes no tasks.
func TestRedisIsFull(t *testing.T) {
	t.Parallel()
	q := delayedtest.NewQueue(t)
	mend := delayedtest.Break(t, q, delayedtest.Full)
	if err := signup.SignUp(t.Context(), q, "ann"); !errors.Is(err, signup.ErrBusy) ||
		!errors.Is(err, delayed.ErrFull) {
		t.Errorf("expected ErrBusy, found %v", err)
	}
	mend()
	delayedtest.RequireEmpty(t, q)
}
