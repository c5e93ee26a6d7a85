//go:build unix

package itest_test

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Times of the model, in ms. They differ enough that waits end in many orders.
const (
	modelBackoff = 10_000
	modelSnooze  = 60_000
	modelKeep    = 3_600_000
	modelLock    = 600_000
	modelGrace   = 60_000
	modelLongest = 180_000
	modelGroup   = 3 // calls of one combined call
	modelRetries = 2
	modelDeaths  = 3
	modelEvery   = 600_000 // between two ticks
	modelOverlap = 24 * 3_600_000
	idLife       = 7 * 24 * 3_600_000
)

// modelTask is the expected state of a task.
type modelTask struct {
	id    string
	state string // pending, active, scheduled, retry, parked, archived, completed, aggregating or gone
	// when a scheduled or retrying task is due, when the info of a completed one is deleted, or when a parked one is
	// archived
	due      int64
	expiry   int64 // 0: none
	keep     int64
	maxRetry int
	retried  int
	deaths   int
	alone    int   // deaths alone that the worker had noted
	late     bool  // whether some workers do not know its function
	values   []int // arguments of a gathered call
	lock     string
	untilRun bool
	ownID    bool // no other task may have its id
}

// over reports whether the task will never run again.
func (t *modelTask) over() bool {
	return t.state == "gone" || t.state == "archived" || t.state == "completed"
}

// modelEntry is a field of the locks hash: who holds it, and until when.
type modelEntry struct {
	value string
	until int64
}

// modelGathered is the expected state of a group.
type modelGathered struct {
	ids         []string
	first, last int64
}

// due returns when the group is fired if it is not full.
func (g *modelGathered) due() int64 { return min(g.last+modelGrace, g.first+modelLongest) }

// model is the expected state of a queue after all operations.
type model struct {
	now     int64
	tasks   map[string]*modelTask
	pending []string
	apart   []string // also pending, but as suspects
	start   int64    // when the model began; deaths are dated by a clock that is never set
	locks   map[string]modelEntry
	groups  map[string]*modelGathered
	ticks   int64           // when the entries tick next
	revoked map[string]bool // ids of tasks that were canceled and may still be pending or active
	// wasRevoked are all ids that were ever in revoked. Workers may know them for longer.
	wasRevoked map[string]bool
	paused     bool
}

func newModel(now int64) *model {
	return &model{
		now: now, start: now, tasks: map[string]*modelTask{}, locks: map[string]modelEntry{},
		groups: map[string]*modelGathered{}, revoked: map[string]bool{}, wasRevoked: map[string]bool{},
	}
}

// held returns who holds a lock or an id that has not lapsed, "" for nobody. A canceled task holds no lock.
func (m *model) held(name string) string {
	e, ok := m.locks[name]
	if !ok || e.until <= m.now || m.revoked[e.value] && !strings.HasPrefix(name, "#") {
		return ""
	}
	return e.value
}

// taken reports whether a task cannot have an id of its own choice.
func (m *model) taken(id string) bool {
	if m.held("#"+id) != "" {
		return true
	}
	t := m.tasks[id]
	if t == nil {
		return false
	}
	switch t.state {
	case "scheduled", "retry", "parked", "archived":
		return true
	case "completed":
		return t.due > m.now
	}
	return false
}

// lapse drops locks whose time is over.
func (m *model) lapse() {
	maps.DeleteFunc(m.locks, func(_ string, e modelEntry) bool { return e.until <= m.now })
}

// enlist adds a task that has an id or a lock of its own, or goes to the front.
func (m *model) enlist(t *modelTask, front bool) {
	from := max(m.now, t.due)
	if t.ownID {
		delete(m.revoked, t.id) // an older task had this id
		m.locks["#"+t.id] = modelEntry{t.id, from + idLife}
	}
	if t.lock != "" {
		m.locks[t.lock] = modelEntry{t.id, from + modelLock}
	}
	m.add(t, front)
}

// add adds a task.
func (m *model) add(t *modelTask, front bool) {
	m.tasks[t.id] = t
	if t.state != "pending" {
		return
	}
	if front {
		m.pending = slices.Insert(m.pending, 0, t.id)
	} else {
		m.pending = append(m.pending, t.id)
	}
}

// replace does what happens to a task whose lock another one takes.
func (m *model) replace(t *modelTask) {
	if t.state == "pending" || t.state == "active" {
		m.revoke(t)
		return
	}
	t.state = "gone"
	delete(m.locks, "#"+t.id)
}

// free releases the lock and the id of a task.
func (m *model) free(t *modelTask) {
	if m.locks[t.lock].value == t.id {
		delete(m.locks, t.lock)
	}
	delete(m.locks, "#"+t.id)
}

// extend lets the lock and the id of a task last as long as the task waits.
func (m *model) extend(t *modelTask, wait int64) {
	longer := func(name string) {
		if e, ok := m.locks[name]; ok {
			m.locks[name] = modelEntry{e.value, e.until + wait}
		}
	}
	if m.locks[t.lock].value == t.id {
		longer(t.lock)
	}
	longer("#" + t.id)
}

// tick enqueues the task of a tick. The entry "alone" has at most one at a time.
func (m *model) tick(entry, id string) bool {
	t := &modelTask{id: id, state: "pending", maxRetry: modelRetries}
	if entry == "alone" {
		t.lock = "p:alone"
		if m.held(t.lock) != "" {
			return false
		}
		m.locks[t.lock] = modelEntry{id, m.now + modelOverlap}
	}
	m.add(t, false)
	return true
}

// sorted returns the tasks in a state by due time and then by id, in the order of a sorted set.
func (m *model) sorted(state string) []*modelTask {
	var found []*modelTask
	for _, t := range m.tasks {
		if t.state == state {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, func(a, b *modelTask) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.id, b.id))
	})
	return found
}

// waits reports whether something is due.
func (m *model) waits() bool {
	for _, t := range m.tasks {
		if (t.state == "scheduled" || t.state == "retry") && t.due <= m.now {
			return true
		}
	}
	for _, g := range m.groups {
		if m.ripe(g) {
			return true
		}
	}
	return false
}

func (m *model) ripe(g *modelGathered) bool { return len(g.ids) >= modelGroup || g.due() <= m.now }

// look makes due tasks pending. It returns parked tasks if the worker knows their function, because it claims those
// next.
func (m *model) look(knowsLate bool) (parked []string) {
	for _, state := range []string{"scheduled", "retry"} {
		for _, t := range m.sorted(state) {
			if t.due <= m.now {
				t.state, t.due = "pending", 0
				m.pending = append(m.pending, t.id)
			}
		}
	}
	for key, g := range m.groups {
		if !m.ripe(g) {
			continue
		}
		first := m.tasks[g.ids[0]]
		for _, id := range g.ids[1:] {
			first.values = append(first.values, m.tasks[id].values...)
			m.tasks[id].state = "gone"
		}
		first.state = "pending"
		m.pending = append(m.pending, first.id)
		delete(m.groups, key)
	}
	if !knowsLate {
		return nil
	}
	for _, t := range m.sorted("parked") {
		parked = append(parked, t.id)
	}
	return parked
}

// cancel cancels a task; false means that it is too late.
func (m *model) cancel(t *modelTask) bool {
	switch t.state {
	case "archived", "completed":
		return false
	case "scheduled", "retry", "parked":
		m.free(t)
		m.annul(t)
		return true
	}
	m.revoke(t)
	return true
}

// revoke notes that a task must not run, or must stop, wherever it is.
func (m *model) revoke(t *modelTask) { m.revoked[t.id], m.wasRevoked[t.id] = true, true }

// annul does what finally happens to a task that was canceled.
func (m *model) annul(t *modelTask) {
	m.free(t)
	delete(m.revoked, t.id)
	t.state = "gone"
	if t.keep > 0 {
		t.state, t.due = "completed", m.now+t.keep
	}
}

// finish ends an active task with the given outcome and returns the outcome's name.
func (m *model) finish(t *modelTask, how string) (outcome string) {
	if m.revoked[t.id] && how != "done" && how != "drop" {
		m.annul(t)
		return "canceled"
	}
	retry := func(wait int64) string {
		if t.retried >= t.maxRetry || t.expiry != 0 && m.now+wait >= t.expiry {
			t.state = "archived"
			m.free(t)
			return "archived"
		}
		t.retried++
		t.state, t.due = "retry", m.now+wait
		m.extend(t, wait)
		return "retry"
	}
	switch how {
	case "done", "drop":
		m.free(t)
		t.state = "gone"
		if t.keep > 0 {
			t.state, t.due = "completed", m.now+t.keep
		}
		return "done"
	case "snooze":
		t.state, t.due = "scheduled", m.now+modelSnooze
		m.extend(t, modelSnooze)
		return "snoozed"
	case "discard":
		t.state = "archived"
		m.free(t)
		return "archived"
	case "retry in":
		return retry(5000)
	default:
		return retry(modelBackoff)
	}
}

// die does what happens to an active task whose worker was swept. alone: the worker had noted that it had no other.
func (m *model) die(t *modelTask, alone bool) {
	t.deaths++
	if alone {
		t.alone++
	}
	if alone && t.alone >= modelDeaths && !m.revoked[t.id] { // the worker that claims it ends it
		t.state = "archived"
		m.free(t)
		return
	}
	m.back(t)
}

// limit returns how many tasks with that many deaths or more a worker holds at once.
func (w *modelWorker) limit(deaths int) int {
	part := 1
	for range deaths - 1 {
		part *= 4
	}
	return max(w.executors/part, 1)
}

// admits reports whether a worker takes a suspect with that many deaths beside what it has in hand.
func (m *model) admits(w *modelWorker, deaths int) bool {
	most := w.limit(deaths)
	if most == 1 {
		return len(w.runs) == 0
	}
	held := 0
	for _, r := range w.runs {
		if r.suspicion >= deaths {
			held++
		}
	}
	return held < most
}

// suspicion returns how many deaths of a task count.
func (m *model) suspicion(t *modelTask) int {
	if m.now-m.start >= 72*3_600_000 {
		return 0
	}
	return t.deaths
}

// back puts an active task at the front of the queue.
func (m *model) back(t *modelTask) {
	t.state = "pending"
	m.pending = slices.Insert(m.pending, 0, t.id)
}

func ms(d int64) time.Duration { return time.Duration(d) * time.Millisecond }
