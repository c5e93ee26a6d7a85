package delayedtest_test

import (
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/delayedtest"
)

// A queue that is empty after as many calls as RunConfig.Most allows has come to its end.
func TestMostIsReachedByTheLastTask(t *testing.T) {
	d := newDiary(t)
	delay(t, d.q, (*diary).Chain, 2)
	cfg := delayedtest.RunConfig{Queues: []*delayed.Queue{d.q}, Funcs: []any{d}, Most: 3}
	if r := delayedtest.Run(t, cfg); r.Endless || r.Err() != nil || len(r.Calls) != 3 {
		t.Errorf("endless: %v, %v after %d calls", r.Endless, r.Err(), len(r.Calls))
	}
	delay(t, d.q, (*diary).Chain, 3)
	if r := delayedtest.Run(t, cfg); !r.Endless || len(r.Calls) != 3 || len(r.Waiting) != 1 {
		t.Errorf("endless: %v after %d calls, %d wait", r.Endless, len(r.Calls), len(r.Waiting))
	}
}
