package delayed

import (
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// lockLife is how long ids, and locks of Debounce, are kept beyond the time when their task is due, and how long a
// task that was replaced is remembered. Both end earlier when the task does.
const lockLife = 7 * 24 * time.Hour

// What a lock is over. Names of locks begin with these letters, so that none is another's.
const (
	lockNothing = ""
	lockArgs    = "u:" // function and arguments; a digest follows
	lockKey     = "k:" // a key of the caller
	lockID      = "#"  // the task's id
	lockEntry   = "p:" // the name of a periodic entry
)

// hold is what a task has to itself: its id, a lock or both. nil stands for a task that has neither.
type hold struct {
	reserve  bool   // the id may be no other task's
	name     string // of the lock, "" for none
	life     int64  // of the lock, ms
	start    bool   // the lock ends when the task starts
	conflict conflict
}

// write notes in the message that the task has something to give up at its end.
func (h *hold) write(x *wire.Extra, id string) *wire.Extra {
	if x == nil {
		x = new(wire.Extra)
	}
	if h.name == "" {
		x.Lock, x.LockLife = lockID+id, lockLife.Milliseconds()
		return x
	}
	x.Lock, x.LockLife, x.LockStart = h.name, h.life, h.start
	return x
}
