package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/godelayed/delayed"
)

// beat is the time between two rounds of calls.
const beat = 100 * time.Millisecond

// traffic delays calls until ctx ends, some often and some seldom, as customers of a shop would bring about.
func traffic(ctx context.Context, redis *delayed.Store) error {
	if err := delayCalls(ctx, redis); ctx.Err() == nil {
		return err
	}
	return nil // the end of ctx ends the call that is being delayed
}

func delayCalls(ctx context.Context, redis *delayed.Store) error {
	mail, media := delayed.NewQueue("mail", redis), delayed.NewQueue("media", redis)
	billing, search := delayed.NewQueue("billing", redis), delayed.NewQueue("search", redis)
	ticks := time.NewTicker(beat)
	defer ticks.Stop()
	languages := []string{"en", "de", "fr"}
	for n := int64(0); ; n++ {
		language := languages[n%3]
		calls := []struct {
			every int64 // beats
			queue *delayed.Queue
			fn    any
			args  []any
		}{
			{1, mail, welcome, []any{1000 + n, language}},
			{3, media, thumbnail, []any{fmt.Sprintf("photo-%04d.jpg", n), 160}},
			{4, search.With(delayed.Group("products")), index, []any{language, n}},
			{6, billing.With(delayed.Header("shop", "paris")), charge, []any{n, 100 + rand.Int64N(20_000)}},
			{20, mail.With(delayed.In(30 * time.Second)), welcome, []any{2000 + n, language}},
			{25, billing, invoice, []any{n, []string{"Tea", "Biscuits"}}},
			{60, media, imports, []any{fmt.Sprintf("products-%d.csv", n), 1000}},
			{90, billing, invoice, []any{n, []string{}}},
		}
		for _, c := range calls {
			if n%c.every != 0 {
				continue
			}
			if _, err := c.queue.DelayContext(ctx, c.fn, c.args...); err != nil {
				return fmt.Errorf("delaying a call: %w", err)
			}
		}
		if n%100 == 0 { // of a version that is gone: no worker knows the function, so its tasks are parked
			if _, err := mail.Enqueue(ctx, delayed.NewGoTask("example.com/shop.Campaign", n, "spring")); err != nil {
				return fmt.Errorf("delaying a call: %w", err)
			}
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return nil
		}
	}
}
