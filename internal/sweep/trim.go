package sweep

import (
	"cmp"
	"context"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// trim drops expired locks, deletes old archived and completed tasks, and archives tasks that were parked for too long.
func (g *Group) trim(ctx context.Context, s *redisstore.Store) error {
	if ages, err := s.Ages(ctx); err != nil || !ages {
		return err
	}
	for ctx.Err() == nil {
		page, err := s.ParkedPage(ctx, 0, redisstore.TrimPage, true)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		ids := make([]string, len(page))
		for i := range page {
			ids[i] = page[i].ID
		}
		messages, err := s.FiledMessages(ctx, ids) // of the first ones, if they are large
		if err != nil {
			return err
		}
		more := len(page) == redisstore.TrimPage || len(messages) < len(page) // there may be more
		page = page[:len(messages)]
		for i := range page {
			if msg, err := wire.Parse(messages[i].Bytes, wire.WorkerLimits); err == nil && msg.Meta.Extra != nil {
				page[i].Lock = msg.Meta.Extra.Lock
			}
			parked := wire.ParseInfo(page[i].Info)
			info := wire.Info{
				Reason: state.ReasonParkedTooLong, Function: parked.Function, Error: parked.Error, At: s.Now(),
			}
			page[i].Info = info.Encode()
		}
		n, err := s.Condemn(ctx, redisstore.ShelfParked, g.limits.ArchiveKeep, page)
		if err != nil {
			return err
		}
		if n == 0 || !more {
			break // by Redis's clock they are not too old
		}
	}
	err := repeat(ctx, redisstore.PardonPage, func() (int, error) { return s.Pardon(ctx, redisstore.PardonPage) })
	if err == nil {
		err = g.lapse(ctx, s)
	}
	if err == nil {
		err = repeat(ctx, redisstore.TrimPage, func() (int, error) {
			return s.Trim(ctx, g.limits.ArchiveMost, redisstore.TrimPage)
		})
	}
	if err == nil {
		err = repeat(ctx, redisstore.TrimPage, func() (int, error) { return s.Expire(ctx, redisstore.TrimPage) })
	}
	return cmp.Or(err, ctx.Err())
}

// repeat calls do until that has done less than a page, or ctx ends.
func repeat(ctx context.Context, page int, do func() (int, error)) error {
	for ctx.Err() == nil {
		if n, err := do(); err != nil || n < page {
			return err
		}
	}
	return nil
}

// lapsePages is how many pages of locks a pass looks at, unless it finds many that have expired. Expired locks only
// take memory: nobody heeds them.
const lapsePages = 20

// lapse drops expired locks. It goes on where the last pass has stopped.
func (g *Group) lapse(ctx context.Context, s *redisstore.Store) error {
	for pages := 1; ctx.Err() == nil; pages++ {
		cursor := cmp.Or(g.lapsed[s], "0")
		next, looked, dropped, err := s.Lapse(ctx, cursor, redisstore.LapsePage)
		if err != nil {
			return err
		}
		g.lapsed[s] = next
		if next == "0" || pages >= lapsePages && dropped < looked/4 {
			return nil
		}
	}
	return ctx.Err()
}
