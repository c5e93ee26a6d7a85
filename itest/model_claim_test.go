//go:build unix

package itest_test

import (
	"errors"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/godelayed/delayed"
)

// modelHeld is the largest number of tasks that a worker of the model has in hand.
const modelHeld = 4

// drawExecutors draws the number of executors of a worker. With 8 of them a worker takes two tasks of two deaths, and a
// task of three deaths runs alone; with 32 it takes two tasks of three deaths.
func drawExecutors(rt *rapid.T) int {
	return rapid.SampledFrom([]int{1, 4, 8, 8, 32}).Draw(rt, "executors")
}

// free reports whether a worker may take another task.
func (w *modelWorker) free() bool { return !w.dead && len(w.runs) < min(w.executors, modelHeld) }

// idle reports whether a worker is alive and has no task.
func (w *modelWorker) idle() bool { return !w.dead && len(w.runs) == 0 }

// claim lets a worker with a free executor take a task.
func (m *machine) claim(rt *rapid.T) {
	m.claimWith(rt, m.pick(rt, "free", (*modelWorker).free))
}

// crowd lets an idle worker take as many tasks as it may.
func (m *machine) crowd(rt *rapid.T) {
	w := m.pick(rt, "idle", (*modelWorker).idle)
	m.claimSome(rt, w, modelHeld)
}

// claimSome lets a worker claim as long as it has fewer than n tasks in hand.
func (m *machine) claimSome(rt *rapid.T, w *modelWorker, n int) {
	for w.free() && len(w.runs) < n {
		before := len(w.runs)
		if m.claimWith(rt, w); len(w.runs) == before {
			return
		}
	}
}

// next takes the task that a worker claims next, nil if there is none. Parked tasks that the worker has found come
// first, suspects come last. It sets apart tasks that have died more than once, unless they end anyway. refused: a
// suspect was claimed that the worker may not run beside its other tasks, so this step claims no other suspect.
func (m *machine) next(w *modelWorker, refused *bool) *modelTask {
	for {
		t := m.front(w)
		switch {
		case t == nil && (*refused || len(m.apart) == 0):
			return nil
		case t == nil:
			t, m.apart = m.tasks[m.apart[0]], m.apart[1:]
			if w.lone == nil && !m.endsAnyway(w, t) && !m.admitsApart(w, t) {
				m.apart = append(m.apart, t.id)
				*refused = true
				continue
			}
			return t
		case w.lone != nil || m.endsAnyway(w, t) || m.suspicion(t) < 2:
			return t
		}
		t.state = "pending"
		m.apart = append(m.apart, t.id)
	}
}

// endsAnyway reports whether a task is not run, whatever its deaths.
func (m *machine) endsAnyway(w *modelWorker, t *modelTask) bool {
	return m.revoked[t.id] || t.late && !w.knowsLate
}

// admitsApart reports whether a worker may run a task from the list of suspects. Its deaths may have lapsed since.
func (m *machine) admitsApart(w *modelWorker, t *modelTask) bool {
	deaths := m.suspicion(t)
	return deaths < 2 || m.admits(w, deaths)
}

// front takes the first parked task that a worker has found, or else the first pending one.
func (m *machine) front(w *modelWorker) *modelTask {
	for len(w.parked) > 0 {
		t := m.tasks[w.parked[0]]
		if w.parked = w.parked[1:]; t != nil && t.state == "parked" {
			return t
		}
	}
	if len(m.pending) == 0 {
		return nil
	}
	t := m.tasks[m.pending[0]]
	m.pending = m.pending[1:]
	return t
}

// claimWith lets a worker take a task.
func (m *machine) claimWith(rt *rapid.T, w *modelWorker) {
	if m.paused {
		if _, _, ended := m.step(w); ended.err == nil || !strings.Contains(ended.err.Error(), "paused") {
			rt.Fatalf("claimed from a paused queue: %+v", ended)
		}
		return
	}
	refused := false
	t := m.next(w, &refused)
	if t == nil && m.waits() {
		w.parked = m.model.look(w.knowsLate)
		t = m.next(w, &refused)
	}
	started, stepped, ended := m.step(w)
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
	case w.lone != nil: // nothing may run beside it
		m.back(t)
		expect("released")
	case !m.revoked[t.id] && t.ownID && m.wasRevoked[t.id] && ended.run != nil && ended.run.Outcome == "released":
		m.back(t) // the worker knew that an older task of this id was canceled, until Redis denied it
	case m.revoked[t.id]:
		m.annul(t)
		expect("canceled")
	case t.late && !w.knowsLate:
		t.state, t.due = "parked", m.now+idLife
		m.extend(t, idLife) // as long as it may stay parked
		expect("parked")
	case t.expiry != 0 && t.expiry <= m.now:
		w.note(t, m.suspicion(t))
		w.ended(t)
		t.state = "archived"
		m.free(t)
		expect("archived")
	default:
		t.state = "active"
		if started == nil || started.id != t.id || t.values != nil && !slices.Equal(started.values, t.values) {
			rt.Fatalf("expected that %s starts with %v, found %v, %+v", t.id, t.values, started, ended)
		}
		w.note(t, m.suspicion(t))
		w.runs = append(w.runs, &modelRun{
			w: w, task: t, reply: started.reply, stepped: stepped, suspicion: m.suspicion(t),
		})
		if t.untilRun {
			own, ok := m.locks["#"+t.id]
			m.free(t)
			if ok {
				m.locks["#"+t.id] = own
			}
		}
	}
}

// note does what a worker notes in Redis when it starts a task: a suspect that it starts with nothing else in hand is
// its only task, until it starts another.
func (w *modelWorker) note(t *modelTask, deaths int) {
	w.marked = nil
	if deaths > 0 && len(w.runs) == 0 {
		w.marked = t
		if deaths >= 2 && w.limit(deaths) == 1 {
			w.lone = t
		}
	}
}

// ended forgets what note has noted of a task.
func (w *modelWorker) ended(t *modelTask) {
	if w.marked == t {
		w.marked = nil
	}
	if w.lone == t {
		w.lone = nil
	}
}

// work lets an idle worker take a task and run it to its end.
func (m *machine) work(rt *rapid.T) {
	w := m.pick(rt, "idle", (*modelWorker).idle)
	if m.claimWith(rt, w); len(w.runs) > 0 {
		m.finishRun(rt, w.runs[0])
	}
}

// finish makes a handler return.
func (m *machine) finish(rt *rapid.T) {
	w := m.pick(rt, "busy", func(w *modelWorker) bool { return len(w.runs) > 0 })
	m.finishRun(rt, rapid.SampledFrom(w.runs).Draw(rt, "run"))
}

// finishRun makes a handler return.
func (m *machine) finishRun(rt *rapid.T, r *modelRun) {
	how := rapid.SampledFrom([]string{
		"done", "done", "fail", "fail", "panic", "discard", "drop", "snooze",
		"retry in",
	}).Draw(rt, "how")
	t := r.task
	if r.w.dead && t.expiry != 0 {
		how = "done" // the clock by which it would decide stops while nothing lets it ask Redis
	}
	ended := m.answer(r, map[string]error{
		"fail": errors.New("failed"), "panic": errPanic, "discard": delayed.Archive(errors.New("no use")),
		"drop": delayed.Drop(errors.New("no matter")), "snooze": delayed.Snooze(ms(modelSnooze)),
		"retry in": delayed.RetryIn(5*time.Second, errors.New("later")),
	}[how])
	m.must(ended.err)
	r.over()
	if r.lost {
		return // whatever the handler returns, the task belongs to another worker
	}
	if want := m.model.finish(t, how); ended.run == nil || !ended.run.Called || ended.run.Outcome != want {
		rt.Fatalf("expected that %s is %s, found %+v", t.id, want, ended.run)
	}
}
