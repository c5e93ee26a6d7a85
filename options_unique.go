package delayed

import (
	"fmt"
	"slices"
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
)

// Unique lets no second task with the same function and the same arguments into the queue for as long as this one is
// there: until it has succeeded, was archived, cancelled or deleted. A retry does not end it. What is the same is
// decided by path and encoded arguments.
//
// ttl bounds it, so that a lock whose task vanished does not stay for ever: the lock lapses that long after the task is
// due at first, and each wait for a retry adds to it. Choose it longer than the task waits and runs. It is rounded to
// milliseconds, and at least one.
//
// A call that finds the lock taken fails with a *DuplicateError, which names the task that is there; OnConflict changes
// that. Given to Func it holds for all tasks of the function.
func Unique(ttl time.Duration) TaskOption { return uniqueOption{ttl} }

type uniqueOption struct{ ttl time.Duration }

func (o uniqueOption) applyCall(c *callOptions)  { c.locks = append(slices.Clip(c.locks), o.applyLock) }
func (o uniqueOption) applyFunc(d *funcDefaults) { d.locks = append(slices.Clip(d.locks), o.applyLock) }
func (o uniqueOption) applyLock(r *lockRule)     { r.over, r.ttl = redisstore.LockArgs, o.ttl }
func (o uniqueOption) String() string            { return fmt.Sprintf("Unique(%v)", o.ttl) }

// UniqueKey is Unique over a key of your own, in place of function and arguments: of all tasks of the queue that have
// the same key, one is there at a time. The key is 1 to 510 bytes in UTF-8.
//
//	q.With(delayed.UniqueKey("invoice:17", time.Hour)).Delay(invoice.Send, 17)
func UniqueKey(key string, ttl time.Duration) TaskOption { return uniqueKeyOption{key, ttl} }

type uniqueKeyOption struct {
	key string
	ttl time.Duration
}

func (o uniqueKeyOption) applyCall(c *callOptions) {
	c.locks = append(slices.Clip(c.locks), o.applyLock)
}

func (o uniqueKeyOption) applyFunc(d *funcDefaults) {
	d.locks = append(slices.Clip(d.locks), o.applyLock)
}

func (o uniqueKeyOption) applyLock(r *lockRule) {
	r.over, r.key, r.ttl = redisstore.LockKey, o.key, o.ttl
}
func (o uniqueKeyOption) String() string { return fmt.Sprintf("UniqueKey(%q, %v)", o.key, o.ttl) }

// UntilStart ends the lock of Unique or UniqueKey when the task starts to run for the first time, not when it is over:
// what happens while it runs may enqueue it once more.
func UntilStart() TaskOption { return untilStartOption{} }

type untilStartOption struct{}

func (o untilStartOption) applyCall(c *callOptions) {
	c.locks = append(slices.Clip(c.locks), o.applyLock)
}

func (o untilStartOption) applyFunc(d *funcDefaults) {
	d.locks = append(slices.Clip(d.locks), o.applyLock)
}
func (untilStartOption) applyLock(r *lockRule) { r.untilStart = true }
func (untilStartOption) String() string        { return "UntilStart()" }

// Conflict says what becomes of a task when another one has its lock or its id. The zero value is Fail.
type Conflict uint8

const (
	// Fail refuses the new task with a *DuplicateError that names the other one.
	Fail Conflict = iota
	// Skip leaves the other task as it is and enqueues nothing; the call succeeds and its Ref is the other task's.
	Skip
	// Replace enqueues the new task, which takes the lock over, and cancels the other one: if it has not started it
	// never runs, and if it runs its context ends as Ref.Cancel ends it. Who waits for one that was scheduled, retrying
	// or parked is told at that moment, or never. It needs Unique or UniqueKey: an id cannot pass from one task to
	// another.
	Replace
)

func (c Conflict) String() string {
	switch c {
	case Fail:
		return "Fail"
	case Skip:
		return "Skip"
	case Replace:
		return "Replace"
	default:
		return fmt.Sprintf("Conflict(%d)", uint8(c))
	}
}

// OnConflict says what becomes of a task whose lock is held, or whose id is taken: Fail, Skip or Replace. Without it,
// it is Fail.
func OnConflict(c Conflict) TaskOption { return conflictOption(c) }

type conflictOption Conflict

func (o conflictOption) applyCall(c *callOptions) {
	c.locks = append(slices.Clip(c.locks), o.applyLock)
}

func (o conflictOption) applyFunc(d *funcDefaults) {
	d.locks = append(slices.Clip(d.locks), o.applyLock)
}
func (o conflictOption) applyLock(r *lockRule) { r.conflict, r.ruled = Conflict(o), true }
func (o conflictOption) String() string        { return fmt.Sprintf("OnConflict(%v)", Conflict(o)) }

// Debounce runs a burst of calls once, with the arguments of the last, when d has passed since that: it is In(d) with
// Unique, UntilStart and OnConflict(Replace). Calls that never pause for as long as d put it off for ever. d must be
// positive.
//
// Calls with other arguments are other tasks, unless UniqueKey says what belongs together:
//
//	q.With(delayed.Debounce(time.Minute), delayed.UniqueKey("index:42", time.Hour)).Delay(index.Update, 42, revision)
func Debounce(d time.Duration) Option { return debounceOption(d) }

type debounceOption time.Duration

func (o debounceOption) applyCall(c *callOptions) {
	if want, wrong := tooShort(time.Duration(o)); wrong {
		c.fault(o, want)
	}
	inOption(o).applyCall(c)
	c.locks = append(slices.Clip(c.locks), o.applyLock)
}

func (o debounceOption) applyLock(r *lockRule) {
	if r.over == redisstore.LockNothing {
		r.over, r.ttl = redisstore.LockArgs, redisstore.LockLife
	}
	r.untilStart, r.conflict, r.ruled = true, Replace, true
	if o <= 0 {
		r.err = fmt.Errorf("%w: %v, expected a positive duration", ErrArguments, o)
	}
}

func (o debounceOption) String() string { return fmt.Sprintf("Debounce(%v)", time.Duration(o)) }

// Front puts the task at the front of its queue, to run next: for the one that is urgent. It goes with neither In nor
// At, whose tasks join the end of the queue when they are due.
func Front() Option { return frontOption{} }

type frontOption struct{}

func (frontOption) applyCall(c *callOptions) { c.front = true }
func (frontOption) String() string           { return "Front()" }
