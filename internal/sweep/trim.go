package sweep

import (
	"context"

	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
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
		for i := range page {
			parked := wire.ParseInfo(page[i].Info)
			info := wire.Info{
				Reason: lifecycle.ReasonParkedTooLong, Function: parked.Function, Error: parked.Error, At: s.Now(),
			}
			page[i].Info = info.Encode()
		}
		if len(page) == 0 {
			break
		}
		n, err := s.Condemn(ctx, redisstore.ShelfParked, g.limits.ArchiveKeep, page)
		if err != nil {
			return err
		}
		if n == 0 || len(page) < redisstore.TrimPage {
			break // by Redis's clock they are not too old
		}
	}
	for ctx.Err() == nil {
		n, err := s.Pardon(ctx, redisstore.PardonPage)
		if err != nil {
			return err
		}
		if n < redisstore.PardonPage {
			break
		}
	}
	for ctx.Err() == nil {
		n, err := s.Lapse(ctx, redisstore.LapsePage)
		if err != nil {
			return err
		}
		if n < redisstore.LapsePage {
			break
		}
	}
	for ctx.Err() == nil {
		n, err := s.Trim(ctx, g.limits.ArchiveMost, redisstore.TrimPage)
		if err != nil {
			return err
		}
		if n < redisstore.TrimPage {
			break
		}
	}
	for ctx.Err() == nil {
		if n, err := s.Expire(ctx, redisstore.TrimPage); err != nil || n < redisstore.TrimPage {
			return err
		}
	}
	return ctx.Err()
}
