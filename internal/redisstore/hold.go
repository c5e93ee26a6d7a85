package redisstore

import (
	"time"

	"github.com/godelayed/delayed/internal/schedule"
	"github.com/godelayed/delayed/internal/wire"
)

// LockLife is how long ids, and locks of Debounce, are kept beyond the time when their task is due, and how long a
// task that was replaced is remembered. Both end earlier when the task does.
const LockLife = 7 * 24 * time.Hour

// What a lock is over. Names of locks begin with these letters, so that none is another's.
const (
	LockNothing = ""
	LockArgs    = "u:"                // function and arguments; a digest follows
	LockKey     = "k:"                // a key of the caller
	lockID      = "#"                 // the task's id
	LockEntry   = schedule.LockPrefix // the name of a periodic entry
)

// Hold is what a task has to itself: its id, a lock or both. nil stands for a task that has neither.
type Hold struct {
	Reserve  bool   // the id may be no other task's
	Name     string // of the lock, "" for none
	Life     int64  // of the lock, ms
	Start    bool   // the lock ends when the task starts
	Conflict Conflict
}

// Write notes in the message that the task has something to give up at its end.
func (h *Hold) Write(x *wire.Extra, id string) *wire.Extra {
	if x == nil {
		x = new(wire.Extra)
	}
	if h.Name == "" {
		x.Lock, x.LockLife = lockID+id, LockLife.Milliseconds()
		return x
	}
	x.Lock, x.LockLife, x.LockStart = h.Name, h.Life, h.Start
	return x
}
