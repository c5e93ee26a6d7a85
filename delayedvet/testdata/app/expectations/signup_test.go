package expectations

import (
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/delayedtest"

	"example.com/app/mail"
)

func TestSignUp(t *testing.T) {
	q := delayedtest.NewQueue(t)
	if _, err := q.Delay(mail.Welcome, 42, "en"); err != nil {
		t.Fatal(err)
	}
	delayedtest.RequireEnqueued(t, q, mail.Welcome, 42, "en")
	delayedtest.RequireEnqueued(t, q, mail.Welcome, "42", "en") // want `argument 1: expected int64, found string`
	delayedtest.RequireEnqueued(t, q, mail.Welcome, delayedtest.Any, "en")
	delayedtest.RequireEnqueued(t, q, mail.Welcome, delayedtest.Any) // want `expected 2 arguments`
	delayedtest.RefuteEnqueued(t, q, mail.Welcome, delayedtest.AnyArgs)
	delayedtest.RefuteEnqueued(t, q, mail.Welcome, 42, delayedtest.AnyArgs) // want `AnyArgs stands for all arguments of a call: expected it alone, found 2 arguments`
	delayedtest.RequireCount(t, q, 1, mail.Level, 300)                      // want `expected uint8, found int 300`
	delayedtest.RequireCount(t, q, 1, delayed.NewPyTask("m:f", nil, nil))
	delayedtest.RequireCount(t, q, 1, delayed.NewPyTask("m:f", nil, nil), 1) // want `a \*Task has its arguments: expected none beside it, found 1`
	delayedtest.RequireEnqueued(t, q, mail.Pause, time.Second)
	delayedtest.Drain(t, q, mail.Welcome, &mail.Mailer{}, mail.SumInts)
	delayedtest.Drain(t, q, (&mail.Mailer{}).Send) // want `found a method value`
	delayedtest.Drain(t, q, mail.Sum[int])         // want `found an instance of a generic function`
	delayedtest.Run(t, delayedtest.RunConfig{
		Queues: []*delayed.Queue{q},
		Funcs:  []any{mail.Welcome, func() {}}, // want `found a function literal`
	})
}
