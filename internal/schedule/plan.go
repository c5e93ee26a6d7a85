package schedule

import (
	"strconv"
	"time"
)

const (
	// onTime is how late a tick may be enqueued before it counts as missed.
	onTime = 30 * time.Second
	// MaxTicks bounds the ticks of one Plan.
	MaxTicks = 100
	// OverlapLife is the life of the lock that keeps runs of an entry apart, in case nobody frees it; each wait for a
	// retry extends it.
	OverlapLife = 24 * time.Hour
	// LockPrefix precedes the entry's name in the name of that lock.
	LockPrefix = "p:"
)

// Outcomes of ticks, as history shows them.
const (
	TickEnqueued = "enqueued"
	TickMissed   = "missed"
	TickOverlap  = "overlap"
	TickQueued   = "queued"
)

// Tick is one tick with its outcomes, which depend on the lock.
type Tick struct {
	At         time.Time
	ID         string // of its task
	Message    []byte // the task, if the tick is enqueued
	Free, Held string // the outcome if the lock is free, or held; empty: none to note
}

// Plan is one change of an entry by its ticks. Redis carries it out only if the entry is still as it was read.
type Plan struct {
	Was       EntryValue
	Free      []byte    // the entry afterwards, if the lock is free
	Held      []byte    // the same, if it is held
	DueFree   time.Time // when a scheduler must look at it next; zero: never
	DueHeld   time.Time
	NotBefore time.Time // the plan fails before this time, by Redis's clock; zero: never
	Lock      string    // empty: none
	Ticks     []Tick
}

// PlanOf decodes an entry and returns the plan for its due ticks. A plan without ticks holds when to look at the entry
// again.
func PlanOf(v EntryValue, now time.Time) (*Plan, error) {
	r, err := Decode(v)
	if err != nil {
		return nil, err
	}
	t, err := r.timetable()
	if err != nil {
		return nil, err
	}
	return r.plan(t, now)
}

// plan returns the plan for the due ticks.
func (r *Record) plan(t *Timetable, now time.Time) (*Plan, error) {
	p := r.unchanged(time.Time{})
	if r.Paused {
		return p, nil // it should not be in the ticks set
	}
	ticks, missed, seen := r.overdue(t, now, MaxTicks)
	if !missed.IsZero() {
		p.Ticks = append(p.Ticks, Tick{At: missed, Free: TickMissed, Held: TickMissed})
	}
	waits := !r.Queued.IsZero()
	if waits {
		ticks = append([]time.Time{r.Queued}, ticks...)
	}
	for i, at := range ticks {
		tick := Tick{At: at, ID: TickID(r.Was.Name, at), Free: TickEnqueued, Held: TickOverlap}
		queue := r.Def.Overlap == OverlapQueue
		switch {
		case p.Lock == "":
			tick.Held = ""
		case i == 0 && waits:
			tick.Held = ""
		case i == 0 && queue:
			tick.Held = TickQueued
		case i == 1 && queue:
			tick.Free = TickQueued
		case i > 0:
			tick.Free = TickOverlap
		}
		if tick.Free == TickEnqueued {
			var err error
			if tick.Message, err = r.Def.taskAt(tick.ID, p.Lock, now); err != nil {
				return nil, err
			}
		}
		p.Ticks = append(p.Ticks, tick)
		if due := t.Due(at); (i > 0 || !waits) && due.After(p.NotBefore) {
			p.NotBefore = due
		}
	}
	after := *r
	after.Prev, after.Next, after.Queued = seen, t.Next(seen), time.Time{}
	held := after
	if r.Def.Overlap == OverlapQueue {
		if len(ticks) > 0 {
			held.Queued = ticks[0]
		}
		if len(ticks) > 1 {
			after.Queued = ticks[1]
		}
	}
	p.Free, p.DueFree = after.Encode(), after.dueBy(t)
	p.Held, p.DueHeld = held.Encode(), held.dueBy(t)
	return p, nil
}

// PlanRun returns the plan for enqueueing the entry's task now, with the given id, beside its ticks.
func (r *Record) PlanRun(id string, now time.Time) (*Plan, error) {
	due, err := r.Due()
	if err != nil {
		return nil, err
	}
	p := r.unchanged(due)
	message, err := r.Def.taskAt(id, p.Lock, now)
	if err != nil {
		return nil, entryError(r.Was.Name, err)
	}
	p.Ticks = []Tick{{At: now, ID: id, Message: message, Free: TickEnqueued}}
	return p, nil
}

// unchanged returns a plan without ticks that leaves the entry as it is.
func (r *Record) unchanged(due time.Time) *Plan {
	p := &Plan{Was: r.Was, Free: r.Was.Raw, Held: r.Was.Raw, DueFree: due, DueHeld: due}
	if r.Def.Overlap != OverlapAllow {
		p.Lock = LockPrefix + r.Was.Name
	}
	return p
}

// TickID returns the id of the task of a tick.
func TickID(name string, tick time.Time) string {
	return name + "@" + strconv.FormatInt(tick.UnixMilli(), 10)
}

// overdue returns the ticks to enqueue now, at most most, in their order; the first tick to skip because it was missed,
// zero for none; and the tick up to which all are dealt with then.
func (r *Record) overdue(t *Timetable, now time.Time, most int) (ticks []time.Time, missed, seen time.Time) {
	seen = r.Prev
	first := t.Next(r.Prev)
	if first.IsZero() || t.Due(first).After(now) {
		return nil, missed, seen
	}
	if now.Sub(t.Due(first)) <= onTime {
		for tick := first; len(ticks) < most && !tick.IsZero() && !t.Due(tick).After(now); tick = t.Next(tick) {
			ticks, seen = append(ticks, tick), tick
		}
		return ticks, missed, seen
	}
	// No scheduler was running for a while. A tick may still wait for its jitter, and those after it wait with it.
	upTo := now
	near := now.Add(-t.jitter - 1)
	if near.Before(r.Prev) {
		near = r.Prev
	}
	for tick := t.Next(near); t.jitter > 0 && !tick.IsZero() && !tick.After(now); tick = t.Next(tick) {
		if t.Due(tick).After(now) {
			upTo = tick.Add(-1)
			break
		}
	}
	n := max(r.Def.Missed, 1)
	ticks = t.last(r.Prev, upTo, min(n, most))
	seen = ticks[len(ticks)-1] // first is one of those
	if r.Def.Missed == MissedSkip && now.Sub(t.Due(seen)) > onTime {
		return nil, first, seen
	}
	if ticks[0].After(first) {
		missed = first
	}
	return ticks, missed, seen
}
