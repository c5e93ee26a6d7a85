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
	m.enqueueCalls(&t, fn, opts, rapid.IntRange(1, 3).Draw(rt, "number"), front)
}

// enqueueCalls enqueues n tasks like t.
func (m *machine) enqueueCalls(t *modelTask, fn *delayed.Function, opts []delayed.Option, n int, front bool) {
	calls := make([]*delayed.Task, n)
	for i := range calls {
		calls[i] = delayed.Call(fn, i)
	}
	refs, err := m.q.With(opts...).DelayMany(context.Background(), calls...)
	m.must(err)
	if front {
		slices.Reverse(refs)
	}
	for _, ref := range refs {
		one := *t
		one.id = ref.ID()
		m.add(&one, front)
	}
}

// enlistOne enqueues a task that has an id or a lock of its own.
func (m *machine) enlistOne(rt *rapid.T, fn *delayed.Function, t *modelTask, opts []delayed.Option, front bool) {
	conflicts := []delayed.Conflict{delayed.ConflictFail, delayed.ConflictSkip, delayed.ConflictReplace}
	conflict := rapid.SampledFrom(conflicts).Draw(rt, "conflict")
	t.ownID = rapid.Bool().Draw(rt, "own id")
	locked := !t.ownID || rapid.Bool().Draw(rt, "lock")
	if t.ownID && conflict == delayed.ConflictReplace {
		conflict = delayed.ConflictFail
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
		if conflict != delayed.ConflictReplace {
			way = owner
		} else {
			replaced = owner
		}
	}
	ref, err := m.q.With(opts...).Delay(fn, 1)
	var duplicate *delayed.DuplicateError
	switch {
	case way != "" && conflict == delayed.ConflictSkip:
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

// pause pauses the queue, or resumes it.
func (m *machine) pause(rt *rapid.T) {
	if m.paused = !m.paused; m.paused {
		m.must(m.q.Pause(context.Background()))
	} else {
		m.must(m.q.Resume(context.Background()))
	}
}
