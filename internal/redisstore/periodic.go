package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/schedule"
)

const (
	// AgendaPage bounds the due entries of one look.
	AgendaPage = 100
	// historyMost is how many lines of history an entry keeps.
	historyMost = 100
)

// Errors of the scripts of periodic entries after which nothing has changed.
var (
	ErrEntryChanged = errors.New("delayed: the periodic entry has changed meanwhile")
	ErrNotDue       = errors.New("delayed: the tick is not due by the clock of Redis")
)

// Agenda lists the entries that are due, and says when to look again.
type Agenda struct {
	Now     time.Time     // by the clock of Redis
	Next    time.Duration // until the next entry is due; negative: there is none
	Entries []schedule.EntryValue
}

// Agenda returns up to AgendaPage due entries, after skipping some.
func (s *Store) Agenda(ctx context.Context, skip int) (Agenda, error) {
	reply, err := redis.Values(s.eval(ctx, "agenda", []string{s.keys.periodic, s.keys.ticks}, skip, AgendaPage))
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
		var e schedule.EntryValue
		if rest, err = redis.Scan(rest, &e.Name, &e.Raw); err != nil {
			return Agenda{}, fmt.Errorf("%w: agenda: %w", ErrReply, err)
		}
		a.Entries = append(a.Entries, e)
	}
	return a, nil
}

// dueText returns a script's argument for when an entry ticks next.
func dueText(due time.Time) any {
	if due.IsZero() {
		return ""
	}
	return due.UnixMilli()
}

// SetEntry replaces an entry; with empty raw it removes the entry and its history. It returns ErrEntryChanged if the
// entry is no longer as it was read.
func (s *Store) SetEntry(ctx context.Context, was schedule.EntryValue, raw []byte, due time.Time) error {
	keys := []string{s.keys.periodic, s.keys.ticks, s.keys.history + was.Name}
	done, err := redis.Bool(s.eval(ctx, "entry", keys, was.Name, was.Raw, raw, dueText(due)))
	if err == nil && !done {
		return ErrEntryChanged
	}
	return err
}

// Tick carries out a plan. holder is the id of the task that holds the lock, if one does. After ErrEntryChanged,
// ErrNotDue or a *TakenError nothing has changed; the last one means that the lock is held and there was nothing to
// note.
func (s *Store) Tick(ctx context.Context, p *schedule.Plan) (holder string, err error) {
	notBefore := int64(0)
	if !p.NotBefore.IsZero() {
		notBefore = p.NotBefore.UnixMilli()
	}
	args := make([]any, 0, 10+5*len(p.Ticks))
	args = append(args, p.Was.Name, p.Was.Raw, p.Free, p.Held, dueText(p.DueFree), dueText(p.DueHeld), notBefore,
		p.Lock, schedule.OverlapLife.Milliseconds(), historyMost)
	for i := range p.Ticks {
		t := &p.Ticks[i]
		args = append(args, t.At.UnixMilli(), t.ID, t.Message, t.Free, t.Held)
	}
	keys := []string{
		s.keys.list, s.keys.noti, s.keys.periodic, s.keys.ticks, s.keys.history + p.Was.Name, s.keys.locks,
		s.keys.revoked,
	}
	reply, err := redis.Values(s.eval(ctx, "tick", keys, args...))
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
	case status == 2 && string(p.Held) == string(p.Was.Raw):
		return "", &TakenError{ID: holder}
	}
	return holder, nil
}

// Entry returns an entry, with nil bytes if there is none.
func (s *Store) Entry(ctx context.Context, name string) (schedule.EntryValue, error) {
	raw, err := redis.Bytes(s.do(ctx, "HGET", s.keys.periodic, name))
	if err != nil && !errors.Is(err, redis.ErrNil) {
		return schedule.EntryValue{}, err
	}
	return schedule.EntryValue{Name: name, Raw: raw}, nil
}

// EntryNames returns the names of all entries, in no order, and those of what else is kept beside them.
func (s *Store) EntryNames(ctx context.Context) ([]string, error) {
	return redis.Strings(s.do(ctx, "HKEYS", s.keys.periodic))
}

// Entries returns all entries, in no order.
func (s *Store) Entries(ctx context.Context) ([]schedule.EntryValue, error) {
	names, err := s.EntryNames(ctx)
	if err != nil {
		return nil, err
	}
	return s.EntriesOf(ctx, names)
}

// EntriesOf returns those of the named entries that exist.
func (s *Store) EntriesOf(ctx context.Context, names []string) (all []schedule.EntryValue, err error) {
	for page := range slices.Chunk(names, AgendaPage) {
		reply, err := s.do(ctx, "HMGET", argsOf(page, s.keys.periodic)...)
		found, err := values(reply, err, len(page))
		if err != nil {
			return nil, err
		}
		raws, err := redis.ByteSlices(found, nil)
		if err != nil {
			return nil, fmt.Errorf("%w: HMGET: %w", ErrReply, err)
		}
		for i, raw := range raws {
			if raw != nil {
				all = append(all, schedule.EntryValue{Name: page[i], Raw: raw})
			}
		}
	}
	return all, nil
}

// NotTicking returns those of the given entries for which the ticks set has no time: they are paused, have ticked for
// the last time, are gone, or Redis has lost the set.
func (s *Store) NotTicking(ctx context.Context, names []string) (without []string, err error) {
	for page := range slices.Chunk(names, AgendaPage) {
		ticks, err := s.inSet(ctx, s.keys.ticks, page)
		if err != nil {
			return nil, err
		}
		for i, has := range ticks {
			if !has {
				without = append(without, page[i])
			}
		}
	}
	return without, nil
}

// DueTicks returns of each of the stores, which are of one handle, up to AgendaPage entries whose ticks were due before
// a time by the clock of Redis, the earliest first.
func DueTicks(ctx context.Context, stores []*Store, before time.Time) ([][]ListedTask, error) {
	all := make([][]ListedTask, len(stores))
	err := readEach(ctx, stores, func(s *Store) (string, []any) {
		return "ZRANGE", []any{
			s.keys.ticks, "-inf", before.UnixMilli(), "BYSCORE", "LIMIT", 0, AgendaPage, "WITHSCORES",
		}
	}, func(i int, reply any) (err error) {
		all[i], err = listedOf(reply, nil)
		return err
	})
	return all, err
}

// HistoryOf returns the lines of an entry's history, the latest first.
func (s *Store) HistoryOf(ctx context.Context, name string) ([]string, error) {
	return redis.Strings(s.do(ctx, "LRANGE", s.keys.history+name, 0, historyMost-1))
}

// Time returns the time by the clock of Redis.
func (s *Store) Time(ctx context.Context) (time.Time, error) {
	return clock(s.do(ctx, "TIME"))
}
