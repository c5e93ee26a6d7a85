package inspect

import (
	"context"

	"github.com/godelayed/delayed/internal/redisstore"
)

// to does the action to the tasks with the given ids. Those that are not in a set are looked for in the lists, all in
// one go, in the direction in which tasks move, so that one that moves meanwhile is found; only then in the sets again.
func (a *actor) to(ctx context.Context, ids []string) error {
	left, err := a.toFiled(ctx, ids)
	if err != nil {
		return err
	}
	for _, in := range notFiled {
		if len(left) == 0 {
			break
		}
		r, err := a.ins.reader(ctx, a.store, &Query{State: in, NewestFirst: true}, place{}, a.now)
		if err != nil {
			return err
		}
		page := mostLimit
		if a.legacy {
			page = redisstore.MaxWithdrawn
		}
		if err := a.each(ctx, r, page, func(t *listed) bool {
			meant := left[t.ID] && t.ID != ""
			if meant {
				delete(left, t.ID)
			}
			return meant
		}, func() bool { return len(left) > 0 }); err != nil {
			return err
		}
	}
	var rest []string
	for _, id := range ids {
		if left[id] {
			rest = append(rest, id)
		}
	}
	a.report.Scanned -= len(left)
	left, err = a.toFiled(ctx, rest)
	for _, id := range rest {
		if left[id] {
			a.report.fail(id, notFound(a.store.Name, id))
		}
	}
	return err
}

// toFiled does the action to those tasks that are in a set, and returns the ids of others.
func (a *actor) toFiled(ctx context.Context, ids []string) (left map[string]bool, err error) {
	left = map[string]bool{}
	seen := map[string]bool{}
	var some []listed // of one state
	for _, id := range ids {
		if seen[id] {
			continue
		}
		seen[id] = true
		a.report.Scanned++
		found, err := a.store.Look(ctx, id, true)
		if err != nil {
			return left, err
		}
		t, ok := a.ins.filed(a.store.Name, id, &found)
		if !ok || id == "" {
			left[id] = true
			continue
		}
		if len(some) > 0 && (some[0].State != t.State || len(some) == redisstore.MaxWithdrawn) {
			if err := a.do(ctx, some); err != nil {
				return left, err
			}
			some = nil
		}
		some = append(some, listed{Task: t})
	}
	if len(some) > 0 {
		err = a.do(ctx, some)
	}
	return left, err
}
