package delayedtest_test

import (
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/delayedtest"
)

// TestWhatAFullRedisAllows: only what needs memory is refused.
func TestWhatAFullRedisAllows(t *testing.T) {
	t.Parallel()
	q := delayedtest.NewQueue(t)
	ref := delay(t, q.With(delayed.In(time.Hour)), ping)
	delayedtest.Break(t, q, delayedtest.Full)
	if err := ref.Cancel(t.Context()); err != nil {
		t.Errorf("Cancel: %v", err)
	}
	delayedtest.RequireEmpty(t, q)
}
