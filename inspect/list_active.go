package inspect

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/state"
)

// activeReader reads the claims of one worker after the other: in the order of their ids, and legacy workers, whose
// claims are in one hash, at last.
type activeReader struct {
	part
	workers []string             // that are still to be read; legacyWorkers stands for all legacy ones
	tokens  []string             // of the first of them that are still to be read; nil: not known yet
	started map[string]time.Time // when tasks of that worker started, by token
}

// legacyWorkers stands for all legacy workers. It sorts behind all ids of workers.
const legacyWorkers = "~legacy"

// listWorkers fills in the workers from that of the present place on.
func (r *activeReader) listWorkers(ctx context.Context) error {
	workers, err := r.store.Workers(ctx)
	workers = append(slices.DeleteFunc(workers, func(w string) bool { return w >= legacyWorkers }), legacyWorkers)
	slices.Sort(workers)
	r.workers = slices.DeleteFunc(workers, func(w string) bool { return w < r.at.Worker })
	return err
}

func (r *activeReader) read(ctx context.Context, n int) (tasks []listed, more bool, err error) {
	for len(r.workers) > 0 {
		worker := r.workers[0]
		if r.tokens == nil {
			if err := r.list(ctx, worker); err != nil {
				return nil, false, err
			}
		}
		if len(r.tokens) == 0 {
			r.workers, r.tokens, r.at = r.workers[1:], nil, place{}
			continue
		}
		claims, done, err := r.claims(ctx, worker, r.tokens[:min(n, len(r.tokens))])
		if err != nil {
			return nil, false, err
		}
		r.tokens = r.tokens[done:]
		for _, c := range claims {
			t := r.task(state.Active, c.Message, nil)
			t.Worker, t.Claimed = worker, c.Since
			t.Started = r.started[c.Token]
			if worker == legacyWorkers {
				t.Worker = c.Token
			}
			tasks = append(tasks, listed{t, place{Worker: worker, Token: c.Token}})
		}
		if len(tasks) > 0 {
			return tasks, true, nil
		}
	}
	return nil, false, nil
}

// list fills in the tokens of a worker that stand behind the present place.
func (r *activeReader) list(ctx context.Context, worker string) (err error) {
	if worker == legacyWorkers {
		r.tokens, err = r.store.LegacyWorkers(ctx, redisstore.MaxListPage)
		slices.Sort(r.tokens)
	} else {
		r.tokens, err = r.store.AllTokens(ctx, worker)
	}
	if err != nil {
		return err
	}
	r.started = map[string]time.Time{}
	stores, ids := []*redisstore.Store{r.store}, [][]string{{worker}}
	rosters, err := redisstore.Rosters(ctx, stores, ids, true)
	if err != nil {
		return err
	}
	if status := readStatus(rosters[0][0].Status); status != nil {
		for _, t := range status.Running {
			r.started[t.Token] = time.UnixMilli(t.Started)
		}
	}
	order := redisstore.CompareTokens
	if worker == legacyWorkers {
		order = strings.Compare
	}
	if r.back {
		slices.Reverse(r.tokens)
	}
	if r.at.Worker == worker {
		r.tokens = slices.DeleteFunc(r.tokens, func(token string) bool {
			c := order(token, r.at.Token)
			return r.back && c >= 0 || !r.back && c <= 0
		})
	}
	if r.tokens == nil {
		r.tokens = []string{}
	}
	return nil
}

// claims reads some claims of a worker, and returns how many tokens it has dealt with.
func (r *activeReader) claims(
	ctx context.Context, worker string, tokens []string,
) (page []redisstore.ClaimedTask, done int, err error) {
	if worker != legacyWorkers {
		return r.store.ClaimPage(ctx, worker, tokens)
	}
	claims, done, err := r.store.Claims(ctx, r.store.LegacyClaims(""), tokens)
	for _, c := range claims {
		page = append(page, redisstore.ClaimedTask{
			Token: c.Token, Message: redisstore.Stored{Bytes: c.Message, Size: c.Size},
		})
	}
	return page, done, err
}
