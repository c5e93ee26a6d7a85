package sweep

import (
	"cmp"
	"context"
	"slices"

	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// takeClaims takes all claims of a dead worker, page by page, and returns their number.
func (g *Group) takeClaims(ctx context.Context, s *redisstore.Store, worker string) (int, error) {
	from := s.ClaimsOf(worker)
	d, err := s.DeathOf(ctx, worker)
	if err != nil {
		return 0, err
	}
	taken := 0
	for ctx.Err() == nil {
		tokens, total, err := s.ClaimTokens(ctx, from, redisstore.SweepPage)
		if err != nil || total == 0 {
			return taken, err
		}
		d.Sole = taken == 0 && total == 1
		// Last claimed first, because each goes to the front of the queue.
		slices.SortFunc(tokens, func(a, b string) int {
			an, ai, _ := redisstore.ParseToken(a)
			bn, bi, _ := redisstore.ParseToken(b)
			return cmp.Or(cmp.Compare(bn, an), cmp.Compare(bi, ai))
		})
		for len(tokens) > 0 {
			page, n, err := s.Claims(ctx, from, tokens)
			if err != nil {
				return taken, err
			}
			requeued, archived, alive, err := s.Sweep(ctx, from, g.limits, g.actions(s, page, d))
			if err != nil || alive {
				return taken, err
			}
			taken += requeued + archived
			tokens = tokens[n:]
		}
	}
	return taken, ctx.Err()
}

// takeLegacyClaim takes the one claim of a dead legacy worker.
func (g *Group) takeLegacyClaim(ctx context.Context, s *redisstore.Store, worker string) error {
	from := s.LegacyClaims(worker)
	page, _, err := s.Claims(ctx, from, []string{worker})
	if err != nil {
		return err
	}
	actions := g.actions(s, page, redisstore.Death{Legacy: true})
	requeued, archived, alive, err := s.Sweep(ctx, from, g.limits, actions)
	if err != nil || alive {
		return err
	}
	if requeued+archived > 0 {
		g.lines.Log(loop.LineKey{Queue: s.Name, Reason: "legacy"}, func(n int) {
			g.cfg.Log.With("queue", s.Name).With("worker",
				worker).Counted(n).Warn("gave back the task of a dead legacy worker")
		})
	}
	return nil
}
