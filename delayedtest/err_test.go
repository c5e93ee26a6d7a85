package delayedtest_test

import (
	"fmt"
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

// TestErrTellsEqualIDsApart: a task that failed is named once, and does not hide one of the same id on another queue,
// for which no function was called.
func TestErrTellsEqualIDsApart(t *testing.T) {
	t.Parallel()
	rdb := delayedtest.NewRedis(t)
	first, second := delayed.NewQueue("first", rdb), delayed.NewQueue("second", rdb)
	failing := delayed.Func(func() error { return delayed.Archive(errWeather) }, delayed.Name("failing"))
	late := delayed.Func(func() {}, delayed.Name("late"))
	delay(t, second.With(delayed.TaskID("x"), delayed.TTL(time.Hour)), late)
	delayedtest.Advance(t, second, time.Hour)
	delay(t, first.With(delayed.TaskID("x")), failing)
	r := delayedtest.Run(t, delayedtest.RunConfig{
		Queues: []*delayed.Queue{first, second}, Funcs: []any{failing, late},
	})
	if len(r.Calls) != 1 || r.Calls[0].Task.ID != "x" {
		t.Errorf("found %+v, expected one call, of the task x", r.Calls)
	}
	text := fmt.Sprint(r.Err())
	for _, want := range []string{"failing() ", "failing() failed", "late() is archived: it did not start in time"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("expected %q once in: %s", want, text)
		}
	}
}
