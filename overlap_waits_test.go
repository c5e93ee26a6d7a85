package delayed_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestWaitingTickIsNoTrouble: a tick waits for a task that does not end. Other entries keep ticking, and the log
// contains no error.
func TestWaitingTickIsNoTrouble(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s, err := delayed.NewScheduler(b.rdb, delayed.SchedulerConfig{
		Queue: b.Name, Owner: "o", Logger: b.config().Logger, Entries: []delayed.Entry{
			{
				Name: "held", Spec: "@every 2s", Task: delayed.Call(b.fn("held", func() {})),
				Overlap: delayed.OverlapQueue,
			},
			{Name: "free", Spec: "@every 1s", Task: delayed.Call(b.fn("free", func() {}))},
		},
	})
	b.Must(err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	waits := func() bool {
		entries, err := b.q.Periodic().List(t.Context())
		b.Must(err)
		return len(entries) == 2 && entries[1].Waiting
	}
	b.Until("it is declared", func() bool { return b.Size("_ticks") == 2 })
	var ticked *delayed.DuplicateError // a tick came before
	if _, err = b.q.Periodic().RunNow(t.Context(), "held"); !errors.As(err, &ticked) {
		b.Must(err)
	}
	b.Until("a tick waits", waits)
	lines, err := b.q.Periodic().History(t.Context(), "free")
	b.Must(err)
	before := len(lines)
	b.Until("others have ticked twice", func() bool {
		lines, err = b.q.Periodic().History(t.Context(), "free")
		b.Must(err)
		return len(lines) >= before+2
	})
	if !waits() {
		t.Error("the tick does not wait any more")
	}
	cancel()
	b.Must(redistest.Await(b.Bench, "the end of Run", ended))
	if text := b.log.String(); strings.Contains(text, "cannot") {
		t.Errorf("the log says\n%s", text)
	}
}
