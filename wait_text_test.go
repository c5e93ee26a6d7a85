package delayed_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/godelayed/delayed"
)

// TestWaitInVain: the wait ends with its context, and the error does not mention Redis if Redis has answered.
func TestWaitInVain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	f := b.fn("f", func() {}, delayed.KeepResult(time.Hour))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, ref := range map[string]*delayed.Ref{
		"of a task that waits":                  b.delay(f),
		"of nobody knows what":                  b.q.Ref("nobody"),
		"of a call that may have been gathered": b.q.With(delayed.Group("k")).Ref("nobody"),
	} {
		deadline, end := context.WithTimeout(t.Context(), 500*time.Millisecond) // not during a look
		err := ref.Wait(deadline)
		end()
		want := "delayed: waiting for task " + ref.String() + ": context deadline exceeded"
		if !errors.Is(err, context.DeadlineExceeded) || err.Error() != want {
			t.Errorf("%s: found %q, expected %q", name, err, want)
		}
		if err := ref.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, with a context that has ended: found %v", name, err)
		}
	}
}
