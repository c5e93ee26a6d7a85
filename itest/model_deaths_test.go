//go:build unix

package itest_test

import (
	"context"
	"errors"
	"slices"

	"pgregory.net/rapid"

	"github.com/godelayed/delayed"
)

// beat renews the heartbeats of workers. Then they learn which tasks were canceled.
func (m *machine) beat(rt *rapid.T) {
	for _, w := range m.workers {
		if w.dead {
			continue
		}
		m.must(w.Beat(context.Background()))
		for _, r := range slices.Clone(w.runs) {
			if r.lost || !m.revoked[r.task.id] {
				continue
			}
			if ended := m.answer(r, errContext); ended.err != nil || ended.run.Outcome != "canceled" ||
				!errors.Is(ended.run.Err, delayed.ErrCanceled) {
				rt.Fatalf("expected that %s is canceled, found %+v", r.task.id, ended)
			}
			m.annul(r.task)
			r.over()
		}
	}
}

// kill removes a worker's heartbeat.
func (m *machine) kill(rt *rapid.T) {
	m.mayKill(rt)
	m.killWorker(m.alive(rt))
}

// mayKill skips an operation if a worker is dead and not swept, because two could be swept in either order, or if only
// one is left.
func (m *machine) mayKill(rt *rapid.T) {
	alive := 0
	for _, w := range m.workers {
		if !w.dead {
			alive++
		} else if w.loses() {
			rt.Skip("one is dead")
		}
	}
	if alive < 2 {
		rt.Skip("the last one")
	}
}

func (m *machine) killWorker(w *modelWorker) {
	_, err := m.conn.Do("DEL", modelQueue+"_worker:"+w.id)
	m.must(err)
	w.dead = true
}

// plague makes tasks kill the workers that run them, one worker after the other, each swept at once. So the same tasks
// share deaths until they are run alone, and end in the archive.
func (m *machine) plague(rt *rapid.T) {
	m.mayKill(rt)
	if m.paused {
		m.pause(rt)
	}
	held := rapid.IntRange(1, modelHeld).Draw(rt, "held")
	if len(m.pending) < held {
		m.enqueueCalls(&modelTask{state: "pending", maxRetry: modelRetries}, modelWork, nil, held, false)
	}
	for range 2*modelDeaths + 1 { // the first death does not count, because nobody knew that the task was alone
		m.mayKill(rt)
		w := m.pick(rt, "idle", (*modelWorker).idle)
		m.claimSome(rt, w, held)
		if len(w.runs) == 0 {
			return
		}
		m.killWorker(w)
		m.sweep(rt)
		for _, r := range slices.Clone(w.runs) {
			m.must(m.answer(r, nil).err)
			r.over()
		}
		m.sweep(rt) // and a new worker takes its place
	}
}

// sweep gives back the tasks of dead workers, the first that was claimed at the very front. New workers replace those
// that died while idle.
func (m *machine) sweep(rt *rapid.T) {
	w := m.alive(rt)
	m.must(w.Sweep(context.Background()))
	m.lapse()
	for i, dead := range m.workers {
		if !dead.dead {
			continue
		}
		if len(dead.runs) == 0 {
			m.workers[i] = m.newWorker(rapid.Bool().Draw(rt, "knows late"), drawExecutors(rt))
			continue
		}
		for _, r := range slices.Backward(dead.runs) {
			if !r.lost {
				r.lost = true
				m.die(r.task, dead.marked == r.task)
			}
		}
	}
}

// stop ends a worker, with or without tasks in hand, and starts another.
func (m *machine) stop(rt *rapid.T) {
	w := m.alive(rt)
	w.Stop()
	for len(w.runs) > 0 {
		r := rapid.SampledFrom(w.runs).Draw(rt, "run")
		switch ended := m.answer(r, errContext); {
		case ended.err == nil && ended.run.Outcome == "released":
			m.back(r.task)
		case ended.err == nil && ended.run.Outcome == "canceled" && m.revoked[r.task.id]:
			m.annul(r.task) // the worker has learned it from a claim since
		default:
			rt.Fatalf("expected that task %s is given back, found %+v, %+v", r.task.id, ended.run, ended.err)
		}
		r.over()
	}
	m.must(w.Close())
	for i := range m.workers {
		if m.workers[i] == w {
			m.workers[i] = m.newWorker(rapid.Bool().Draw(rt, "knows late"), drawExecutors(rt))
		}
	}
}
