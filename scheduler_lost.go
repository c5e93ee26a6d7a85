package delayed

import (
	"context"
	"strconv"
	"time"

	"github.com/godelayed/delayed/internal/schedule"
)

// announce keeps the scheduler's queue known to those who look for queues.
func (s *Scheduler) announce(ctx context.Context) {
	if now := time.Now(); !now.Before(s.announceAt) {
		s.announceAt = now.Add(s.announcer.Announce(ctx))
	}
}

// uphold writes again what Redis has lost of the entries: at most once in s.every.
func (s *Scheduler) uphold(ctx context.Context) {
	if time.Since(s.upheld) < s.every/2 {
		return // a signal or a tick has ended the rest early
	}
	err := s.restore(ctx)
	switch {
	case err == nil:
		s.log.Relief(&s.lossy, "the periodic entries are in Redis again")
	case ctx.Err() == nil:
		s.log.Trouble(&s.lossy, "cannot find out whether Redis has lost periodic entries; trying again", err)
		return
	}
	s.upheld = time.Now()
}

// restore declares the entries again if Redis has lost the declaration, and mends the times of their ticks.
func (s *Scheduler) restore(ctx context.Context) error {
	if lost, err := s.lost(ctx); err != nil {
		return err
	} else if lost {
		if err := s.declare(ctx); err != nil {
			return err
		}
		s.log.Warn("Redis had lost the periodic entries that the code declares; they are declared again")
	}
	return s.mendTicks(ctx)
}

// lost reports whether Redis has lost the declaration of the entries. An entry that somebody has removed is not lost:
// the stamp is there still. What another version of the program has declared since, a scheduler of that version should
// restore; only if none does until the next look, this one declares its own.
func (s *Scheduler) lost(ctx context.Context) (bool, error) {
	if s.cfg.Owner == "" {
		return false, nil
	}
	_, stamp, err := s.readStamp(ctx)
	if err != nil {
		return false, err
	}
	if stamp >= s.latest {
		s.latest, s.yielded = stamp, false
		return false, nil
	}
	if s.generation < s.latest && !s.yielded {
		s.yielded = true
		return false, nil
	}
	s.yielded = false
	return true, nil
}

// readStamp returns the stamp of the last declaration of this owner, 0 if there is none.
func (s *Scheduler) readStamp(ctx context.Context) (was schedule.EntryValue, stamp int64, err error) {
	was, err = s.store.Entry(ctx, "@declared:"+s.cfg.Owner) // names of entries do not begin with @
	if err != nil {
		return was, 0, err
	}
	stamp, err = strconv.ParseInt(string(was.Raw), 10, 64)
	if err != nil {
		stamp = 0 // none, or not a number
	}
	return was, stamp, nil
}

// stamp notes that the entries are declared. Stamps are times in ms since 1970, which rise also when Redis has lost the
// last one. A declaration that has changed nothing shares the stamp of the one before.
func (s *Scheduler) stamp(ctx context.Context, changed bool) error {
	was, stamp, err := s.readStamp(ctx)
	if err != nil {
		return err
	}
	if changed || stamp < s.latest || stamp == 0 && len(s.declared) > 0 {
		now, err := s.store.Time(ctx)
		if err != nil {
			return err
		}
		stamp = max(now.UnixMilli(), stamp+1, s.latest+1)
		// After redisstore.ErrEntryChanged, which another program has caused, the caller tries again.
		if err := s.store.SetEntry(ctx, was, strconv.AppendInt(nil, stamp, 10), time.Time{}); err != nil {
			return err
		}
	}
	s.generation, s.latest = stamp, stamp
	return nil
}

// mendTicks gives times to entries that should tick and have none, because Redis has lost the set of these times. It
// looks at the declared entries, and at all if one of them or everything has no time.
func (s *Scheduler) mendTicks(ctx context.Context) error {
	names := make([]string, 0, len(s.declared))
	for i := range s.declared {
		names = append(names, s.declared[i].name)
	}
	for all := s.nothingAhead; ; all = true {
		if all {
			var err error
			if names, err = s.store.EntryNames(ctx); err != nil {
				return err
			}
		}
		n, err := s.mendTicksOf(ctx, names)
		if n > 0 {
			s.log.WithField("entries", n).Warn("Redis had lost when periodic entries tick; it is written again")
		}
		if n == 0 || err != nil || all {
			return err
		}
	}
}

// mendTicksOf is mendTicks for the named entries. It returns how many had no time.
func (s *Scheduler) mendTicksOf(ctx context.Context, names []string) (mended int, err error) {
	if names, err = s.store.NotTicking(ctx, names); err != nil {
		return 0, err
	}
	values, err := s.store.EntriesOf(ctx, names)
	if err != nil {
		return 0, err
	}
	for _, v := range values {
		r, err := schedule.Decode(v)
		if err != nil {
			continue // a newer version has written it, or it is no entry
		}
		due, err := r.Due()
		if err != nil || due.IsZero() {
			continue
		}
		if err := ignoreChange(s.store.SetEntry(ctx, v, v.Raw, due)); err != nil {
			return mended, err
		}
		mended++
	}
	return mended, nil
}
