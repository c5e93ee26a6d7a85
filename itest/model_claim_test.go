//go:build unix

package itest_test

import (
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// claimWith lets a worker take a task.
func (m *machine) claimWith(rt *rapid.T, w *modelWorker) {
	if m.paused {
		if _, ended := m.step(w); ended.err == nil || !strings.Contains(ended.err.Error(), "paused") {
			rt.Fatalf("claimed from a paused queue: %+v", ended)
		}
		return
	}
	t := m.next(w)
	if t == nil && m.waits() {
		w.parked = m.model.look(w.knowsLate)
		t = m.next(w)
	}
	started, ended := m.step(w)
	m.must(ended.err)
	if t == nil {
		if started != nil || ended.run != nil {
			rt.Fatalf("expected nothing to claim, found %v, %+v", started, ended.run)
		}
		return
	}
	expect := func(outcome string) {
		if started != nil || ended.run == nil || ended.run.Called || ended.run.Outcome != outcome {
			rt.Fatalf("expected that task %s is %s, found %v, %+v", t.id, outcome, started, ended.run)
		}
	}
	switch {
	case m.revoked[t.id]:
		m.annul(t)
		expect("canceled")
	case t.late && !w.knowsLate:
		t.state, t.due = "parked", m.now+idLife
		m.extend(t, idLife) // as long as it may stay parked
		expect("parked")
	case t.expiry != 0 && t.expiry <= m.now:
		t.state = "archived"
		m.free(t)
		expect("archived")
	default:
		t.state, w.task, w.lost, t.suspect = "active", t, false, m.suspicion(t) > 0
		if started == nil || started.id != t.id || t.values != nil && !slices.Equal(started.values, t.values) {
			rt.Fatalf("expected that %s starts with %v, found %v, %+v", t.id, t.values, started, ended)
		}
		if t.untilRun {
			own, ok := m.locks["#"+t.id]
			m.free(t)
			if ok {
				m.locks["#"+t.id] = own
			}
		}
	}
}
