package delayed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	// agendaPage bounds the due entries of one look.
	agendaPage = 100
	// maxTicks bounds the ticks that one script handles.
	maxTicks = 100
	// historyMost is how many lines of history an entry keeps.
	historyMost = 100
	// overlapLife is how long the lock lasts at most that keeps runs of an entry apart, should nobody free it; each
	// wait for a retry adds to it.
	overlapLife = 24 * time.Hour
)

// Answers of the scripts of periodic entries that leave everything as it is.
var (
	errEntryChanged = errors.New("delayed: the periodic entry has changed meanwhile")
	errNotDue       = errors.New("delayed: the tick is not due by the clock of Redis")
)

// agenda is what is due, and when to look again.
type agenda struct {
	now     time.Time     // by the clock of Redis
	next    time.Duration // until an entry is due that is not yet; negative: there is none
	entries []entryValue
}

// entryValue is an entry as Redis holds it. No bytes: there is none.
type entryValue struct {
	name string
	raw  []byte
}

// agenda returns up to agendaPage due entries, after skipping some.
func (s *store) agenda(ctx context.Context, skip int) (agenda, error) {
	reply, err := redis.Values(s.eval(ctx, scriptAgenda, []string{s.keys.periodic, s.keys.ticks}, skip, agendaPage))
	if err != nil {
		return agenda{}, err
	}
	var now, next int64
	rest, err := redis.Scan(reply, &now, &next)
	if err != nil || len(rest)%2 != 0 {
		return agenda{}, fmt.Errorf("%w: agenda", errReply)
	}
	a := agenda{now: time.UnixMilli(now), next: time.Duration(next) * time.Millisecond}
	for len(rest) > 0 {
		var e entryValue
		if rest, err = redis.Scan(rest, &e.name, &e.raw); err != nil {
			return agenda{}, fmt.Errorf("%w: agenda: %w", errReply, err)
		}
		a.entries = append(a.entries, e)
	}
	return a, nil
}

// dueText is how a script is told when an entry ticks next.
func dueText(due time.Time) any {
	if due.IsZero() {
		return ""
	}
	return due.UnixMilli()
}

// setEntry replaces an entry; no raw bytes remove it, and its history with it. errEntryChanged: it is not as it was
// read.
func (s *store) setEntry(ctx context.Context, was entryValue, raw []byte, due time.Time) error {
	keys := []string{s.keys.periodic, s.keys.ticks, s.keys.history + was.name}
	done, err := redis.Bool(s.eval(ctx, scriptEntry, keys, was.name, was.raw, raw, dueText(due)))
	if err == nil && !done {
		return errEntryChanged
	}
	return err
}

// Outcomes of ticks, as history shows them.
const (
	tickEnqueued = "enqueued"
	tickMissed   = "missed"
	tickOverlap  = "overlap"
	tickQueued   = "queued"
)

// tickRow is one tick with what becomes of it, depending on the lock.
type tickRow struct {
	tick       time.Time
	id         string
	message    []byte
	free, held string
}

// tickCall is one change of an entry by its ticks.
type tickCall struct {
	was     entryValue
	free    []byte    // the entry afterwards, if the lock is free
	held    []byte    // the same, if it is held
	dueFree time.Time // when it ticks next; zero: never
	dueHeld time.Time
	earlier time.Time // must have come; zero: any time will do
	lock    string    // empty: none
	rows    []tickRow
}

// tick carries out a call. holder is the id of the task that holds the lock, if one does. errEntryChanged and errNotDue
// say that nothing was done, and so does a *takenError: the lock is held and there was nothing to note.
func (s *store) tick(ctx context.Context, c *tickCall) (holder string, err error) {
	earlier := int64(0)
	if !c.earlier.IsZero() {
		earlier = c.earlier.UnixMilli()
	}
	args := make([]any, 0, 10+5*len(c.rows))
	args = append(args, c.was.name, c.was.raw, c.free, c.held, dueText(c.dueFree), dueText(c.dueHeld), earlier, c.lock,
		overlapLife.Milliseconds(), historyMost)
	for i := range c.rows {
		r := &c.rows[i]
		args = append(args, r.tick.UnixMilli(), r.id, r.message, r.free, r.held)
	}
	keys := []string{
		s.keys.list, s.keys.noti, s.keys.periodic, s.keys.ticks, s.keys.history + c.was.name, s.keys.locks,
		s.keys.locked,
	}
	reply, err := redis.Values(s.eval(ctx, scriptTick, keys, args...))
	if err != nil {
		return "", err
	}
	var status, ms int64
	if rest, err := redis.Scan(reply, &status, &ms, &holder); err != nil || len(rest) > 0 {
		return "", fmt.Errorf("%w: tick", errReply)
	}
	switch {
	case status == 0:
		return "", errEntryChanged
	case status < 0:
		return "", errNotDue
	case status == 2 && string(c.held) == string(c.was.raw):
		return "", &takenError{holder}
	}
	return holder, nil
}

// entry returns an entry, without bytes if there is none.
func (s *store) entry(ctx context.Context, name string) (entryValue, error) {
	raw, err := redis.Bytes(s.read(ctx, "HGET", s.keys.periodic, name))
	if err != nil && !errors.Is(err, redis.ErrNil) {
		return entryValue{}, err
	}
	return entryValue{name, raw}, nil
}

// entries returns all entries, in no order.
func (s *store) entries(ctx context.Context) ([]entryValue, error) {
	names, err := redis.Strings(s.read(ctx, "HKEYS", s.keys.periodic))
	if err != nil {
		return nil, err
	}
	var all []entryValue
	for len(names) > 0 {
		n := min(len(names), agendaPage)
		args := make([]any, 0, n+1)
		args = append(args, s.keys.periodic)
		for _, name := range names[:n] {
			args = append(args, name)
		}
		values, err := redis.ByteSlices(s.read(ctx, "HMGET", args...))
		if err != nil {
			return nil, err
		}
		if len(values) != n {
			return nil, fmt.Errorf("%w: HMGET", errReply)
		}
		for i, raw := range values {
			if raw != nil {
				all = append(all, entryValue{names[i], raw})
			}
		}
		names = names[n:]
	}
	return all, nil
}

// historyOf returns the lines of an entry's history, the latest first.
func (s *store) historyOf(ctx context.Context, name string) ([]string, error) {
	return redis.Strings(s.read(ctx, "LRANGE", s.keys.history+name, 0, historyMost-1))
}

// time returns the time by the clock of Redis.
func (s *store) time(ctx context.Context) (time.Time, error) {
	reply, err := s.read(ctx, "TIME")
	parts, err := ints(reply, err, 2)
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(parts[0], parts[1]*1000), nil
}
