package delayed

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

const (

	// maxLockKey bounds a key of the caller, in bytes: with its prefix it is a name on the wire.
	maxLockKey = 510
)

// lockRule is what options say about the lock of a task.
type lockRule struct {
	over       string // redisstore.LockNothing, redisstore.LockArgs or redisstore.LockKey
	key        string
	ttl        time.Duration
	untilStart bool
	conflict   Conflict
	ruled      bool // conflict was given
	err        error
}

// holdOf says what the task is to have to itself when it is enqueued with the options of q.
func (t *Task) holdOf(o *callOptions) (*redisstore.Hold, error) {
	if len(t.locks)+len(o.locks) == 0 && o.id == nil {
		return nil, nil //nolint:nilnil // see hold
	}
	var r lockRule
	for _, apply := range t.locks {
		apply(&r)
	}
	for _, apply := range o.locks {
		apply(&r)
	}
	h := &redisstore.Hold{
		Reserve: o.id != nil, Start: r.untilStart, Conflict: redisstore.Conflict(r.conflict),
		Life: r.ttl.Milliseconds(),
	}
	switch {
	case r.err != nil:
		return nil, r.err
	case r.conflict > Replace:
		return nil, fmt.Errorf("%w: OnConflict(%v), expected Fail, Skip or Replace", ErrArguments, r.conflict)
	case h.Reserve && r.conflict == Replace:
		return nil, fmt.Errorf("%w: TaskID with OnConflict(Replace) or Debounce: a task cannot replace one of its "+
			"own id; "+
			"leave TaskID out and give its text to UniqueKey", ErrArguments)
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

// digestOf names a function and its arguments: 192 bits of the SHA-256 of the path, a zero byte and the encoded
// arguments. One argument is the same as a bare value and as an array of one.
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

// enlist enqueues n of the tasks, from number first on, and gives those their Refs in whose stead others are there.
func (q *Queue) enlist(
	ctx context.Context, envelopes []redisstore.Envelope, holds []*redisstore.Hold, refs []*Ref, first, n int,
) error {
	tasks := make([]redisstore.Listing, n)
	for i := range tasks {
		tasks[i].Envelope = envelopes[first+i]
		if holds != nil {
			tasks[i].Hold = holds[first+i]
		}
	}
	others, err := q.store.Enlist(ctx, q.options.place(), tasks)
	var refused *redisstore.EnlistError
	if errors.As(err, &refused) {
		return fmt.Errorf("task %d: %w", first+refused.Index+1, &DuplicateError{ID: refused.ID})
	}
	for i, other := range others {
		if other != "" {
			refs[first+i].become(other)
		}
	}
	return err
}

// become makes r the Ref of a task that somebody else has enqueued.
func (r *Ref) become(id string) { r.id, r.text = id, wire.TaskIDText{} }

// enlistOne enqueues one task.
func (q *Queue) enlistOne(ctx context.Context, t redisstore.Listing, ref *Ref) error {
	others, err := q.store.Enlist(ctx, q.options.place(), []redisstore.Listing{t})
	var refused *redisstore.EnlistError
	if errors.As(err, &refused) {
		return &DuplicateError{ID: refused.ID}
	}
	if err == nil && others[0] != "" {
		ref.become(others[0])
	}
	return err
}

// place says where a task with these options goes.
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

// unlockStart frees the lock of a task that is about to start. It answers false if the task does not start, and has
// seen to what becomes of it.
func (w *Worker) unlockStart(c *claim) bool {
	if fields := c.fn.UnknownFields(&c.msg); len(fields) > 0 {
		c.lane.finisher.add(w.park(c, reasonFields, c.lane.now(), fields...)) // it has not started: its lock lasts
		return false
	}
	if w.unlock(c) {
		w.cancelClaim(c, false)
		return false
	}
	return true
}

// unlock frees the lock of a task that starts, and answers whether it must not: another one has taken its place. If
// Redis does not answer, the task starts, and the lock ends with it.
func (w *Worker) unlock(c *claim) (replaced bool) {
	left, replaced, err := c.lane.store.Unlock(w.tasks, c.msg.Meta.ID)
	log := w.log.With("queue", c.lane.store.Name).With("function", c.msg.Path).With("id", c.msg.Meta.ID)
	switch {
	case err != nil:
		log.WithError(err).Warn("the task's lock could not be freed before it starts, and lasts until it is over")
	case replaced:
		log.Info("task dropped: another one has taken its place")
	default:
		c.freed = !left
	}
	return replaced
}

// disown frees what a task has to itself that was handed on to another queue, whose workers cannot do it. If Redis does
// not answer, it lapses.
func (f *finisher) disown(ctx context.Context, c *claim) {
	if err := f.lane.store.Disown(ctx, c.msg.Meta.ID); err != nil {
		f.log.With("function", c.msg.Path).With("id", c.msg.Meta.ID).WithError(err).
			Warn("the lock of a task that was handed on could not be freed, and lasts until it lapses")
	}
}

// held says whether the task may have something to give up when it ends.
func (c *claim) held() bool {
	x := c.msg.Meta.Extra
	return x != nil && x.Lock != "" && !c.freed
}
