package delayedtest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/delayedtest"
)

// Tasks that no function was called for count as problems also when other tasks ran.
func TestErrTellsOfTasksWithoutACall(t *testing.T) {
	t.Parallel()
	q := delayedtest.NewQueue(t)
	late := delayed.Func(func() {}, delayed.Name("late"))
	delay(t, q.With(delayed.TTL(time.Hour)), late)
	delayedtest.Advance(t, q, time.Hour)
	delay(t, q, ping)
	delay(t, q, digest, 1)
	r := delayedtest.Run(t, delayedtest.RunConfig{Queues: []*delayed.Queue{q}, Funcs: []any{late, ping}})
	if len(r.Calls) != 1 || len(r.Failed()) > 0 {
		t.Errorf("found %+v, expected that only ping ran", r.Calls)
	}
	for _, want := range []string{
		"late() is archived: it did not start in time", "digest(1, []) is parked (unknown function)",
	} {
		if err := r.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("expected %q in: %v", want, err)
		}
	}
}
