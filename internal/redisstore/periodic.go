package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	// AgendaPage bounds the due entries of one look.
	AgendaPage = 100
	// MaxTicks bounds the ticks that one script handles.
	MaxTicks = 100
	// historyMost is how many lines of history an entry keeps.
	historyMost = 100
	// OverlapLife is how long the lock lasts at most that keeps runs of an entry apart, should nobody free it; each
	// wait for a retry adds to it.
	OverlapLife = 24 * time.Hour
)

// Answers of the scripts of periodic entries that leave everything as it is.
var (
	ErrEntryChanged = errors.New("delayed: the periodic entry has changed meanwhile")
	ErrNotDue       = errors.New("delayed: the tick is not due by the clock of Redis")
)

// Agenda is what is due, and when to look again.
type Agenda struct {
	Now     time.Time     // by the clock of Redis
	Next    time.Duration // until an entry is due that is not yet; negative: there is none
	Entries []EntryValue
}

// EntryValue is an entry as Redis holds it. No bytes: there is none.
type EntryValue struct {
	Name string
	Raw  []byte
}

// Agenda returns up to AgendaPage due entries, after skipping some.
func (s *Store) Agenda(ctx context.Context, skip int) (Agenda, error) {
	reply, err := redis.Values(s.eval(ctx, ScriptAgenda, []string{s.Keys.periodic, s.Keys.ticks}, skip, AgendaPage))
	if err != nil {
		return Agenda{}, err
	}
	var now, next int64
	rest, err := redis.Scan(reply, &now, &next)
	if err != nil || len(rest)%2 != 0 {
		return Agenda{}, fmt.Errorf("%w: agenda", ErrReply)
	}
	a := Agenda{Now: time.UnixMilli(now), Next: time.Duration(next) * time.Millisecond}
	for len(rest) > 0 {
		var e EntryValue
		if rest, err = redis.Scan(rest, &e.Name, &e.Raw); err != nil {
			return Agenda{}, fmt.Errorf("%w: agenda: %w", ErrReply, err)
		}
		a.Entries = append(a.Entries, e)
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

// SetEntry replaces an entry; no raw bytes remove it, and its history with it. ErrEntryChanged: it is not as it was
// read.
func (s *Store) SetEntry(ctx context.Context, was EntryValue, raw []byte, due time.Time) error {
	keys := []string{s.Keys.periodic, s.Keys.ticks, s.Keys.history + was.Name}
	done, err := redis.Bool(s.eval(ctx, ScriptEntry, keys, was.Name, was.Raw, raw, dueText(due)))
	if err == nil && !done {
		return ErrEntryChanged
	}
	return err
}

// Outcomes of ticks, as history shows them.
const (
	TickEnqueued = "enqueued"
	TickMissed   = "missed"
	TickOverlap  = "overlap"
	TickQueued   = "queued"
)

// TickRow is one tick with what becomes of it, depending on the lock.
type TickRow struct {
	Tick       time.Time
	ID         string
	Message    []byte
	Free, Held string
}

// TickCall is one change of an entry by its ticks.
type TickCall struct {
	Was     EntryValue
	Free    []byte    // the entry afterwards, if the lock is free
	Held    []byte    // the same, if it is held
	DueFree time.Time // when it ticks next; zero: never
	DueHeld time.Time
	Earlier time.Time // must have come; zero: any time will do
	Lock    string    // empty: none
	Rows    []TickRow
}

// Tick carries out a call. holder is the id of the task that holds the lock, if one does. ErrEntryChanged and ErrNotDue
// say that nothing was done, and so does a *TakenError: the lock is held and there was nothing to note.
func (s *Store) Tick(ctx context.Context, c *TickCall) (holder string, err error) {
	earlier := int64(0)
	if !c.Earlier.IsZero() {
		earlier = c.Earlier.UnixMilli()
	}
	args := make([]any, 0, 10+5*len(c.Rows))
	args = append(args, c.Was.Name, c.Was.Raw, c.Free, c.Held, dueText(c.DueFree), dueText(c.DueHeld), earlier, c.Lock,
		OverlapLife.Milliseconds(), historyMost)
	for i := range c.Rows {
		r := &c.Rows[i]
		args = append(args, r.Tick.UnixMilli(), r.ID, r.Message, r.Free, r.Held)
	}
	keys := []string{
		s.Keys.List, s.Keys.Noti, s.Keys.periodic, s.Keys.ticks, s.Keys.history + c.Was.Name, s.Keys.locks,
		s.Keys.locked,
	}
	reply, err := redis.Values(s.eval(ctx, ScriptTick, keys, args...))
	if err != nil {
		return "", err
	}
	var status, ms int64
	if rest, err := redis.Scan(reply, &status, &ms, &holder); err != nil || len(rest) > 0 {
		return "", fmt.Errorf("%w: tick", ErrReply)
	}
	switch {
	case status == 0:
		return "", ErrEntryChanged
	case status < 0:
		return "", ErrNotDue
	case status == 2 && string(c.Held) == string(c.Was.Raw):
		return "", &TakenError{holder}
	}
	return holder, nil
}

// Entry returns an entry, without bytes if there is none.
func (s *Store) Entry(ctx context.Context, name string) (EntryValue, error) {
	raw, err := redis.Bytes(s.do(ctx, "HGET", s.Keys.periodic, name))
	if err != nil && !errors.Is(err, redis.ErrNil) {
		return EntryValue{}, err
	}
	return EntryValue{name, raw}, nil
}

// Entries returns all entries, in no order.
func (s *Store) Entries(ctx context.Context) ([]EntryValue, error) {
	names, err := redis.Strings(s.do(ctx, "HKEYS", s.Keys.periodic))
	if err != nil {
		return nil, err
	}
	var all []EntryValue
	for len(names) > 0 {
		n := min(len(names), AgendaPage)
		args := make([]any, 0, n+1)
		args = append(args, s.Keys.periodic)
		for _, name := range names[:n] {
			args = append(args, name)
		}
		values, err := redis.ByteSlices(s.do(ctx, "HMGET", args...))
		if err != nil {
			return nil, err
		}
		if len(values) != n {
			return nil, fmt.Errorf("%w: HMGET", ErrReply)
		}
		for i, raw := range values {
			if raw != nil {
				all = append(all, EntryValue{names[i], raw})
			}
		}
		names = names[n:]
	}
	return all, nil
}

// HistoryOf returns the lines of an entry's history, the latest first.
func (s *Store) HistoryOf(ctx context.Context, name string) ([]string, error) {
	return redis.Strings(s.do(ctx, "LRANGE", s.Keys.history+name, 0, historyMost-1))
}

// Time returns the time by the clock of Redis.
func (s *Store) Time(ctx context.Context) (time.Time, error) {
	reply, err := s.do(ctx, "TIME")
	parts, err := ints(reply, err, 2)
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(parts[0], parts[1]*1000), nil
}
