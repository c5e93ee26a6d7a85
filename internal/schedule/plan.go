// Package schedule says when periodic entries tick, and how an entry changes when it does. It knows neither Redis nor
// what time it is.
package schedule

import "time"

const (
	// MaxTicks bounds the ticks of one Plan.
	MaxTicks = 100
	// OverlapLife is how long the lock lasts at most that keeps runs of an entry apart, should nobody free it; each
	// wait for a retry adds to it.
	OverlapLife = 24 * time.Hour
	// LockPrefix is what the name of that lock begins with; the entry's name follows.
	LockPrefix = "p:"
)

// EntryValue is an entry as Redis holds it. No bytes: there is none.
type EntryValue struct {
	Name string
	Raw  []byte
}

// Outcomes of ticks, as history shows them.
const (
	TickEnqueued = "enqueued"
	TickMissed   = "missed"
	TickOverlap  = "overlap"
	TickQueued   = "queued"
)

// Tick is one tick with what becomes of it, depending on the lock.
type Tick struct {
	At         time.Time
	ID         string // of its task
	Message    []byte // the task, if the tick is enqueued
	Free, Held string // the outcome if the lock is free, or held; empty: there is nothing to note
}

// Plan is one change of an entry by its ticks. It is carried out only if the entry is still as it was read.
type Plan struct {
	Was       EntryValue
	Free      []byte    // the entry afterwards, if the lock is free
	Held      []byte    // the same, if it is held
	DueFree   time.Time // when a scheduler must look at it next; zero: never
	DueHeld   time.Time
	NotBefore time.Time // must have come by the clock of Redis; zero: any time will do
	Lock      string    // empty: none
	Ticks     []Tick
}
