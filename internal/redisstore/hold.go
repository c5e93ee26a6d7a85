package redisstore

import (
	"time"

	"github.com/godelayed/delayed/internal/schedule"
	"github.com/godelayed/delayed/internal/wire"
)

// LockLife is how long ids, and locks of Debounce, are kept after their task is due, and how long Redis remembers that
// a task was replaced. All of them end earlier if the task does.
const LockLife = 7 * 24 * time.Hour

// Prefixes of the names of locks, one for each kind.
const (
	LockNothing = ""
	LockArgs    = "u:"                // before a digest of function and arguments
	LockKey     = "k:"                // before a key of the caller
	lockID      = "#"                 // before the task's id
	LockEntry   = schedule.LockPrefix // before the name of a periodic entry
)

// Hold is a task's exclusive claim on its id, on a lock, or on both. nil stands for neither.
type Hold struct {
	Reserve  bool   // no other task may have the id
	Name     string // of the lock, "" for none
	Life     int64  // of the lock, ms
	Start    bool   // the lock ends when the task starts
	Conflict Conflict
}

// Write notes in the message what the task holds, so that its worker frees it at the end.
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
