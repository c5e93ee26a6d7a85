package delayed

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// Unique lets no second task with the same function and the same arguments into the queue for as long as this one is
// there: until it has succeeded, or was dropped, archived, canceled or deleted. A retry does not end that. Two tasks
// are the same if their paths and their encoded arguments are equal.
//
// ttl bounds it, so that a lock whose task vanished does not stay for ever: the lock lapses that long after the task is
// first due, and each wait for a retry adds to it. Choose it longer than the task waits and runs. It must be positive.
//
// A call that finds the lock taken fails with a *DuplicateError, which names the task that is there; OnConflict changes
// that.
func Unique(ttl time.Duration) TaskOption { return lockOption{name: "Unique", ttl: ttl} }

// UniqueKey is Unique over a key of your own, in place of function and arguments: of all tasks of the queue that have
// the same key, one is there at a time. The key is 1 to 510 bytes in UTF-8.
//
//	q.With(delayed.UniqueKey("invoice:17", time.Hour)).Delay(invoice.Send, 17)
func UniqueKey(key string, ttl time.Duration) TaskOption {
	return lockOption{name: "UniqueKey", key: key, ttl: ttl}
}

// UntilStart ends the lock of Unique or UniqueKey when the task starts to run for the first time, not when it is over,
// so that it can be enqueued once more while it runs.
func UntilStart() TaskOption { return lockOption{name: "UntilStart"} }

// Conflict decides what becomes of a new task when another task already has the lock or id that it asks for; see
// OnConflict. The zero value is ConflictFail.
type Conflict uint8

const (
	// ConflictFail with OnConflict refuses the new task with a *DuplicateError that names the other one.
	ConflictFail Conflict = iota
	// ConflictSkip with OnConflict leaves the other task as it is and enqueues nothing; the call succeeds and its Ref
	// is the other task's. Nothing else shows the caller which of the two happened: where that matters, use
	// ConflictFail and look for a *DuplicateError.
	ConflictSkip
	// ConflictReplace with OnConflict enqueues the new task, which takes the lock over, and cancels the other one: if
	// it has not started it never runs, and if it runs its context ends as Ref.Cancel ends it. Nothing is kept of a
	// task that was scheduled, retrying or parked when it was replaced: a Ref.Wait for it returns an error that wraps
	// ErrCanceled at that moment, and a Wait that begins later lasts until its context ends. ConflictReplace needs
	// Unique or UniqueKey: an id cannot pass from one task to another.
	ConflictReplace
)

// String returns the policy's name.
func (c Conflict) String() string {
	switch c {
	case ConflictFail:
		return "ConflictFail"
	case ConflictSkip:
		return "ConflictSkip"
	case ConflictReplace:
		return "ConflictReplace"
	default:
		return fmt.Sprintf("Conflict(%d)", uint8(c))
	}
}

// OnConflict decides what becomes of a task whose lock is held, or whose id is taken: ConflictFail, ConflictSkip or
// ConflictReplace. Without it, it is ConflictFail.
func OnConflict(c Conflict) TaskOption { return lockOption{name: "OnConflict", conflict: c} }

// Debounce runs a burst of calls once, with the arguments of the last, when d has passed since the last one: it is
// In(d) with Unique, UntilStart and OnConflict(ConflictReplace); an OnConflict given after it applies instead of
// ConflictReplace. Its lock lapses seven days after the task is due, unless a Unique or UniqueKey beside it gives
// another ttl. Calls that never pause for as long as d put it off for ever. d must be positive. In and At are refused
// beside it.
//
// Calls with other arguments are other tasks, unless UniqueKey says what belongs together:
//
//	q.With(delayed.Debounce(time.Minute), delayed.UniqueKey("index:42", time.Hour)).Delay(index.Update, 42, revision)
func Debounce(d time.Duration) Option { return debounceOption(d) }

type debounceOption time.Duration

func (o debounceOption) forQueueWith(c *callOptions) {
	c.refuses(o, tooShort(time.Duration(o)))
	c.dueIn(time.Duration(o))
	c.debounce = true
	lockOption{name: "Debounce", ttl: time.Duration(o)}.forQueueWith(c)
}

func (o debounceOption) String() string { return fmt.Sprintf("Debounce(%v)", time.Duration(o)) }

// lockOption is Unique, UniqueKey, UntilStart, OnConflict or what Debounce says of locks, by its name.
type lockOption struct {
	name, key string
	ttl       time.Duration // of Debounce: its delay
	conflict  Conflict
}

func (o lockOption) forQueueWith(c *callOptions) { c.locks = append(slices.Clip(c.locks), o) }
func (o lockOption) forFunc(d *funcDefaults)     { d.locks = append(slices.Clip(d.locks), o) }

func (o lockOption) String() string {
	switch o.name {
	case "Unique":
		return fmt.Sprintf("Unique(%v)", o.ttl)
	case "UniqueKey":
		return fmt.Sprintf("UniqueKey(%q, %v)", o.key, o.ttl)
	case "OnConflict":
		return fmt.Sprintf("OnConflict(%v)", o.conflict)
	}
	return o.name + "()"
}

// lockRule holds the options for the lock of a task.
type lockRule struct {
	over       string // redisstore.LockNothing, redisstore.LockArgs or redisstore.LockKey
	key        string
	ttl        time.Duration
	untilStart bool
	conflict   Conflict
	ruled      bool // conflict was given
	err        error
}

// add applies an option.
func (r *lockRule) add(o lockOption) {
	switch o.name {
	case "Unique":
		r.over, r.ttl = redisstore.LockArgs, o.ttl
	case "UniqueKey":
		r.over, r.key, r.ttl = redisstore.LockKey, o.key, o.ttl
	case "UntilStart":
		r.untilStart = true
	case "OnConflict":
		r.conflict, r.ruled = o.conflict, true
	case "Debounce":
		if r.over == redisstore.LockNothing {
			r.over, r.ttl = redisstore.LockArgs, redisstore.LockLife
		}
		r.untilStart, r.conflict, r.ruled = true, ConflictReplace, true
		if o.ttl <= 0 {
			r.err = fmt.Errorf("%w: %v, expected a positive duration", ErrArguments, debounceOption(o.ttl))
		}
	}
}

// Front puts the task at the front of its queue, to run next: for the one that is urgent. It goes with neither In nor
// At, whose tasks join the end of the queue when they are due.
func Front() Option { return frontOption{} }

type frontOption struct{}

func (frontOption) forQueueWith(c *callOptions) { c.front = true }
func (frontOption) String() string              { return "Front()" }

// maxLockKey bounds a key of the caller, in bytes; with its prefix it is a name in messages.
const maxLockKey = 510

// holdOf returns the id and lock that the task is to hold with the given options; nil for neither.
func (t *Task) holdOf(o *callOptions) (*redisstore.Hold, error) {
	if len(t.locks)+len(o.locks) == 0 && o.id == nil {
		return nil, nil //nolint:nilnil // nil holds nothing
	}
	var r lockRule
	for _, lock := range t.locks {
		r.add(lock)
	}
	for _, lock := range o.locks {
		r.add(lock)
	}
	h := &redisstore.Hold{
		Reserve: o.id != nil, Start: r.untilStart, Conflict: redisstore.Conflict(r.conflict),
		Life: r.ttl.Milliseconds(),
	}
	switch {
	case r.err != nil:
		return nil, r.err
	case r.conflict > ConflictReplace:
		return nil, fmt.Errorf("%w: OnConflict(%v), expected ConflictFail, ConflictSkip or ConflictReplace",
			ErrArguments, r.conflict)
	case h.Reserve && r.conflict == ConflictReplace:
		return nil, fmt.Errorf("%w: TaskID with OnConflict(ConflictReplace) or Debounce: a task cannot replace one of "+
			"its own id; leave TaskID out and give its text to UniqueKey", ErrArguments)
	case r.over == redisstore.LockNothing && r.untilStart:
		return nil, fmt.Errorf("%w: UntilStart without a lock: add Unique or UniqueKey", ErrArguments)
	case r.over == redisstore.LockNothing && r.ruled && !h.Reserve:
		return nil, fmt.Errorf("%w: OnConflict(%v) without a lock: add Unique, UniqueKey or TaskID", ErrArguments,
			r.conflict)
	case r.over != redisstore.LockNothing && h.Life <= 0:
		return nil, fmt.Errorf("%w: the lock's ttl is %v: expected at least 1ms, and longer than the task waits and "+
			"runs; a number without a unit counts nanoseconds", ErrArguments, r.ttl)
	case r.over == redisstore.LockKey && (r.key == "" || len(r.key) > maxLockKey || !utf8.ValidString(r.key)):
		return nil, fmt.Errorf("%w: UniqueKey of %d bytes, expected 1 to %d in UTF-8", ErrArguments, len(r.key),
			maxLockKey)
	}
	switch r.over {
	case redisstore.LockArgs:
		h.Name = redisstore.LockArgs + digestOf(&t.msg)
	case redisstore.LockKey:
		h.Name = redisstore.LockKey + r.key
	}
	return h, nil
}

// digestOf returns a digest of a function and its arguments: 192 bits of the SHA-256 of the path, a zero byte and the
// encoded arguments. A single argument has the same digest as a bare value and as an array of one.
func digestOf(m *wire.Message) string {
	d := sha256.New()
	d.Write([]byte(m.Path))
	d.Write([]byte{0})
	payload := m.Payload
	if m.Meta.HasN && m.Meta.N == 1 && len(payload) > 0 {
		payload = payload[1:] // the header of an array of one is one byte
	}
	d.Write(payload)
	d.Write(m.Args())
	d.Write(m.Kwargs())
	return base64.RawURLEncoding.EncodeToString(d.Sum(nil)[:24])
}

// place returns where a task with these options goes.
func (o *callOptions) place() redisstore.Place {
	switch {
	case o.front:
		return redisstore.Place{How: "front"}
	case !o.later:
		return redisstore.Place{How: "back"}
	case o.relative:
		return redisstore.Place{How: "in", Due: o.due}
	default:
		return redisstore.Place{How: "at", Due: o.due}
	}
}
