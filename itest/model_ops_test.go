//go:build unix

package itest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/delayedtest"
	"github.com/godelayed/delayed/internal/seam"
)

// enqueue enqueues tasks, with options of all kinds.
func (m *machine) enqueue(rt *rapid.T) {
	t := modelTask{state: "pending", maxRetry: modelRetries, late: rapid.IntRange(0, 7).Draw(rt, "late") == 0}
	var opts []delayed.Option
	option := func(o delayed.Option) { opts = append(opts, o) }
	front := false
	switch rapid.IntRange(0, 5).Draw(rt, "when") {
	case 0, 1:
		wait := rapid.SampledFrom([]int64{1, 10_000, 60_000, 300_000}).Draw(rt, "in")
		option(delayed.In(ms(wait)))
		t.state, t.due = "scheduled", m.now+wait
	case 2:
		wait := rapid.SampledFrom([]int64{-1000, 0, 90_000}).Draw(rt, "at")
		option(delayed.At(time.UnixMilli(m.now + wait)))
		t.state, t.due = "scheduled", m.now+wait
	case 3:
		front = true
		option(delayed.Front())
	}
	if rapid.Bool().Draw(rt, "retries") {
		t.maxRetry = rapid.IntRange(0, 2).Draw(rt, "max")
		option(delayed.MaxRetry(t.maxRetry))
	}
	if rapid.IntRange(0, 4).Draw(rt, "ttl") == 0 {
		life := int64(120_000)
		if wait := t.due - m.now; wait >= life { // otherwise the call is refused
			life = wait + 60_000
		}
		t.expiry = m.now + life
		option(delayed.TTL(ms(life)))
	}
	if rapid.IntRange(0, 3).Draw(rt, "keep") == 0 {
		t.keep = modelKeep
		option(delayed.Retention(ms(modelKeep)))
	}
	fn := modelWork
	if t.late {
		fn = modelLate
	}
	if rapid.Bool().Draw(rt, "own") {
		m.enlistOne(rt, fn, &t, opts, front)
		return
	}
	calls := make([]*delayed.Task, rapid.IntRange(1, 3).Draw(rt, "number"))
	for i := range calls {
		calls[i] = delayed.Call(fn, i)
	}
	refs, err := m.q.With(opts...).DelayMany(context.Background(), calls...)
	m.must(err)
	if front {
		m.lapse()
		slices.Reverse(refs)
	}
	for _, ref := range refs {
		one := t
		one.id = ref.ID()
		m.add(&one, front)
	}
}

// enlistOne enqueues a task that has an id or a lock of its own.
func (m *machine) enlistOne(rt *rapid.T, fn *delayed.Function, t *modelTask, opts []delayed.Option, front bool) {
	conflict := rapid.SampledFrom([]delayed.Conflict{delayed.Fail, delayed.Skip, delayed.Replace}).Draw(rt, "conflict")
	t.ownID = rapid.Bool().Draw(rt, "own id")
	locked := !t.ownID || rapid.Bool().Draw(rt, "lock")
	if t.ownID && conflict == delayed.Replace {
		conflict = delayed.Fail
	}
	opts = append(opts, delayed.OnConflict(conflict))
	way := ""
	if t.ownID {
		t.id = rapid.SampledFrom([]string{"t1", "t2", "t3", "t4", "t5"}).Draw(rt, "id")
		opts = append(opts, delayed.TaskID(t.id))
		if m.taken(t.id) {
			way = t.id
		}
	}
	if locked {
		key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "key")
		t.lock, t.untilRun = "k:"+key, rapid.Bool().Draw(rt, "until start")
		opts = append(opts, delayed.UniqueKey(key, ms(modelLock)))
		if t.untilRun {
			opts = append(opts, delayed.UntilStart())
		}
	}
	replaced := ""
	if owner := m.held(t.lock); way == "" && t.lock != "" && owner != "" {
		if conflict != delayed.Replace {
			way = owner
		} else {
			replaced = owner
		}
	}
	ref, err := m.q.With(opts...).Delay(fn, 1)
	var duplicate *delayed.DuplicateError
	switch {
	case way != "" && conflict == delayed.Skip:
		if err != nil || ref.ID() != way {
			rt.Fatalf("expected the task %s in its stead, found %v, %v", way, ref, err)
		}
		return
	case way != "":
		if !errors.As(err, &duplicate) || duplicate.ID != way {
			rt.Fatalf("expected that %s is in the way, found %v, %v", way, ref, err)
		}
		return
	}
	m.must(err)
	t.id = ref.ID()
	if replaced != "" {
		m.replace(m.tasks[replaced])
	}
	m.enlist(t, front)
}

// gather adds a call to a group. A full group is fired at once, so that no call comes too late for it.
func (m *machine) gather(rt *rapid.T) {
	const key = "g" // only one group, because of two groups due at once either may be first
	m.values++
	ref, err := m.q.With(delayed.Group(key)).Delay(modelGather, m.values)
	m.must(err)
	g := m.groups[key]
	if g == nil {
		g = &modelGathered{first: m.now}
		m.groups[key] = g
	}
	g.last = m.now
	g.ids = append(g.ids, ref.ID())
	m.tasks[ref.ID()] = &modelTask{id: ref.ID(), state: "aggregating", values: []int{m.values}, maxRetry: modelRetries}
	if len(g.ids) == modelGroup {
		w := m.alive(rt)
		m.must(w.Look(context.Background()))
		w.parked = m.model.look(w.knowsLate)
	}
}

// pick returns a worker for which holds is true, and skips the operation if there is none.
func (m *machine) pick(rt *rapid.T, what string, holds func(*modelWorker) bool) *modelWorker {
	var found []*modelWorker
	for _, w := range m.workers {
		if holds(w) {
			found = append(found, w)
		}
	}
	if len(found) == 0 {
		rt.Skip("no worker is " + what)
	}
	return rapid.SampledFrom(found).Draw(rt, what)
}

// alive returns a worker with a heartbeat. There is always one.
func (m *machine) alive(rt *rapid.T) *modelWorker {
	return m.pick(rt, "alive", func(w *modelWorker) bool { return !w.dead })
}

// claim lets an idle worker take a task.
func (m *machine) claim(rt *rapid.T) {
	m.claimWith(rt, m.pick(rt, "idle", func(w *modelWorker) bool { return !w.dead && w.task == nil }))
}

// next takes the task that a worker claims next, nil if there is none. Parked tasks that the worker has found come
// first, suspects come last. It sets apart tasks that have died more than once, unless they end anyway.
func (m *machine) next(w *modelWorker) *modelTask {
	for {
		t := m.front(w)
		if t == nil || m.revoked[t.id] || t.late && !w.knowsLate || m.suspicion(t) < 2 {
			if t == nil && len(m.apart) > 0 {
				t, m.apart = m.tasks[m.apart[0]], m.apart[1:]
			}
			return t
		}
		t.state = "pending"
		m.apart = append(m.apart, t.id)
	}
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

// work lets an idle worker take a task and run it to its end.
func (m *machine) work(rt *rapid.T) {
	w := m.pick(rt, "idle", func(w *modelWorker) bool { return !w.dead && w.task == nil })
	if m.claimWith(rt, w); w.task != nil {
		m.finishWith(rt, w)
	}
}

// finish makes a handler return.
func (m *machine) finish(rt *rapid.T) {
	m.finishWith(rt, m.pick(rt, "busy", func(w *modelWorker) bool { return w.task != nil }))
}

// finishWith makes the handler of a worker return.
func (m *machine) finishWith(rt *rapid.T, w *modelWorker) {
	how := rapid.SampledFrom([]string{
		"done", "done", "fail", "fail", "panic", "discard", "drop", "snooze",
		"retry in",
	}).Draw(rt, "how")
	if w.dead && w.task.expiry != 0 {
		how = "done" // the clock by which it would decide stops while nothing lets it ask Redis
	}
	m.answer(w, map[string]error{
		"fail": errors.New("failed"), "panic": errPanic, "discard": delayed.Discard(errors.New("no use")),
		"drop": delayed.Drop(errors.New("no matter")), "snooze": delayed.Snooze(ms(modelSnooze)),
		"retry in": delayed.RetryIn(5*time.Second, errors.New("later")),
	}[how])
	ended := m.finished(w)
	m.must(ended.err)
	t := w.task
	w.task = nil
	if w.lost {
		return // whatever the handler returns, the task belongs to another worker
	}
	if want := m.model.finish(t, how); ended.run == nil || !ended.run.Called || ended.run.Outcome != want {
		rt.Fatalf("expected that %s is %s, found %+v", t.id, want, ended.run)
	}
}

// tick lets the scheduler enqueue the due ticks: all of one entry, and at most one of the other.
func (m *machine) tick(*rapid.T) {
	m.must(seam.Tick(context.Background(), m.ticker))
	var due []int64
	for ; m.ticks <= m.now; m.ticks += modelEvery {
		due = append(due, m.ticks)
	}
	if len(due) == 0 {
		return
	}
	m.model.tick("alone", fmt.Sprint("alone@", due[0]))
	for _, at := range due {
		m.model.tick("each", fmt.Sprint("each@", at))
	}
}

// runNow makes an entry tick immediately.
func (m *machine) runNow(rt *rapid.T) {
	entry := rapid.SampledFrom([]string{"alone", "each"}).Draw(rt, "entry")
	ref, err := m.q.Periodic().RunNow(context.Background(), entry)
	if err == nil {
		if !m.model.tick(entry, ref.ID()) {
			rt.Fatalf("entry %s ticks although its task is not over", entry)
		}
		return
	}
	if !errors.Is(err, delayed.ErrDuplicate) || entry != "alone" || m.held("p:alone") == "" {
		rt.Fatalf("entry %s: %v", entry, err)
	}
}

// chosen returns a task in one of some states, and skips the operation if there is none.
func (m *machine) chosen(rt *rapid.T, states ...string) *modelTask {
	var ids []string
	for id, t := range m.tasks {
		if slices.Contains(states, t.state) && (t.state != "completed" || t.due > m.now) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		rt.Skip("no task is there")
	}
	slices.Sort(ids)
	return m.tasks[rapid.SampledFrom(ids).Draw(rt, "task")]
}

// rerun makes an archived task pending again.
func (m *machine) rerun(rt *rapid.T) {
	t := m.chosen(rt, "archived")
	m.must(m.q.Ref(t.id).RunAgain(context.Background()))
	t.state, t.retried, t.deaths, t.alone = "pending", 0, 0, 0
	delete(m.revoked, t.id)
	if t.expiry <= m.now {
		t.expiry = 0
	}
	if t.ownID || t.lock != "" {
		m.locks["#"+t.id] = modelEntry{t.id, m.now + idLife}
	}
	m.pending = append(m.pending, t.id)
}

// remove deletes a task that is over, and checks that no other task can be deleted.
func (m *machine) remove(rt *rapid.T) {
	t := m.chosen(rt, "archived", "completed", "pending", "scheduled", "active")
	err := m.q.Ref(t.id).Delete(context.Background())
	if !t.over() {
		// An older task with the same id may still be kept, although its time is over.
		if !errors.Is(err, delayed.ErrNotArchived) && (err != nil || !t.ownID) {
			rt.Fatalf("expected that %s cannot be deleted, found %v", t.id, err)
		}
		return
	}
	m.must(err)
	t.state = "gone"
}

// cancel cancels a task.
func (m *machine) cancel(rt *rapid.T) {
	t := m.chosen(rt, "pending", "active", "scheduled", "retry", "parked", "archived", "completed", "gone")
	err := m.q.Ref(t.id).Cancel(context.Background())
	if m.model.cancel(t) {
		m.must(err)
	} else if !errors.Is(err, delayed.ErrEnded) {
		rt.Fatalf("expected that %s has ended, found %v", t.id, err)
	}
}

// beat renews the heartbeats of workers. Then they learn which tasks were canceled.
func (m *machine) beat(rt *rapid.T) {
	for _, w := range m.workers {
		if w.dead {
			continue
		}
		m.must(w.Beat(context.Background()))
		if w.task == nil || w.lost || !m.revoked[w.task.id] {
			continue
		}
		if ended := m.finished(w); ended.err != nil || ended.run.Outcome != "canceled" ||
			!errors.Is(ended.run.Err, delayed.ErrCanceled) {
			rt.Fatalf("expected that %s is canceled, found %+v", w.task.id, ended)
		}
		m.annul(w.task)
		w.task = nil
	}
}

// advance lets time pass.
func (m *machine) advance(rt *rapid.T) {
	d := rapid.SampledFrom([]int64{1, 5_000, 30_000, 60_000, 400_000, 4_000_000}).Draw(rt, "ms")
	delayedtest.Advance(m.tb, m.q, ms(d))
	m.now += d
	m.beat(rt)
}

// look lets a worker make due tasks pending.
func (m *machine) look(rt *rapid.T) {
	w := m.alive(rt)
	m.must(w.Look(context.Background()))
	w.parked = m.model.look(w.knowsLate)
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
		} else if w.task != nil && !w.lost {
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

// plague makes tasks kill the workers that run them, one after the other, each swept at once.
func (m *machine) plague(rt *rapid.T) {
	for range modelDeaths + 1 { // the first death does not count, because nobody knew that the task was alone
		m.mayKill(rt)
		w := m.pick(rt, "idle", func(w *modelWorker) bool { return !w.dead && w.task == nil })
		m.claimWith(rt, w)
		if w.task == nil {
			return
		}
		m.killWorker(w)
		m.sweep(rt)
		m.answer(w, nil)
		m.must(m.finished(w).err)
		w.task = nil
		m.sweep(rt) // and a new worker takes its place
	}
}

// sweep gives back the tasks of dead workers. New workers replace those that died while idle.
func (m *machine) sweep(rt *rapid.T) {
	w := m.alive(rt)
	m.must(w.Sweep(context.Background()))
	m.lapse()
	for i, dead := range m.workers {
		switch {
		case !dead.dead:
		case dead.task == nil:
			m.workers[i] = m.newWorker(rapid.Bool().Draw(rt, "knows late"))
		case !dead.lost:
			dead.lost = true
			m.die(dead.task)
		}
	}
}

// stop ends a worker, with or without a task in hand, and starts another.
func (m *machine) stop(rt *rapid.T) {
	w := m.alive(rt)
	if w.Stop(); w.task != nil {
		ended := m.finished(w)
		if m.must(ended.err); ended.run == nil || ended.run.Outcome != "released" {
			rt.Fatalf("expected that task %s is given back, found %+v", w.task.id, ended.run)
		}
		m.back(w.task)
		w.task = nil
	}
	m.must(w.Close())
	for i := range m.workers {
		if m.workers[i] == w {
			m.workers[i] = m.newWorker(rapid.Bool().Draw(rt, "knows late"))
		}
	}
}

// pause pauses the queue, or resumes it.
func (m *machine) pause(rt *rapid.T) {
	if m.paused = !m.paused; m.paused {
		m.must(m.q.Pause(context.Background()))
	} else {
		m.must(m.q.Resume(context.Background()))
	}
}
