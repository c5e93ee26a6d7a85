package delayedtest_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/delayedtest"
)

// Index writes what it was called with.
func (d *diary) Index(tenant string, ids ...int) { d.Write(fmt.Sprint(tenant, ids)) }

// TestGroupsAreDrained lets calls wait for their group, and run as one when time has moved on.
func TestGroupsAreDrained(t *testing.T) {
	d := newDiary(t)
	q := d.q.With(delayed.Group("search"), delayed.Gather(delayed.GatherPolicy{Grace: time.Minute, MaxSize: 10}))
	delay(t, q, (*diary).Index, "a", 1, 2)
	delay(t, q.With(delayed.In(30*time.Second)), (*diary).Index, "a", 4)
	delay(t, q, (*diary).Index, "a", 3)
	delayedtest.RequireEnqueued(t, d.q, (*diary).Index, "a", 1, 2)
	var states []string
	for _, task := range delayedtest.Tasks(t, d.q) {
		states = append(states, task.State)
	}
	if want := []string{"aggregating", "aggregating", "scheduled"}; !slices.Equal(states, want) {
		t.Errorf("tasks are %q, expected %q", states, want)
	}
	r := delayedtest.Run(t, delayedtest.RunConfig{Queues: []*delayed.Queue{d.q}, Funcs: []any{d}})
	if want := []string{"a[1 2 3 4]"}; r.Err() != nil || !slices.Equal(d.lines, want) {
		t.Errorf("%q, %v, expected %q", d.lines, r.Err(), want)
	}
	if least, most := 90*time.Second, 91*time.Second; r.Elapsed < least || r.Elapsed > most {
		t.Errorf("time moved on by %v, expected %v", r.Elapsed, least)
	}
	delayedtest.RequireEmpty(t, d.q)
}
