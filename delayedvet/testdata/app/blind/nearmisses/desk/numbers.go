// Package desk is what the people at the desks of a library do.
package desk

import (
	"context"
	"math"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/blind/nearmisses/catalog"
	"example.com/app/blind/nearmisses/loans"
	"example.com/app/blind/nearmisses/notify"
)

const (
	topShelf = 255
	cents    = 1 << 20
	week     = 7
)

// Numbers delays functions with numbers that fit.
func Numbers(ctx context.Context, q *delayed.Queue, days int, shelf uint8, late time.Duration) error {
	calls := []func() (*delayed.Ref, error){
		func() (*delayed.Ref, error) {
			return q.Delay(loans.Return, 17, topShelf) // right: 255 is the largest uint8
		},
		func() (*delayed.Ref, error) {
			return q.Delay(loans.Return, int64(17), shelf) // right: integers that fit a named type
		},
		func() (*delayed.Ref, error) {
			return q.DelayContext(ctx, loans.Prolong, loans.ID(17), week*2) // right: a constant of int
		},
		func() (*delayed.Ref, error) {
			return q.Delay(loans.Prolong, uint16(17), days) // right: a context comes from the worker; a small integer
		},
		func() (*delayed.Ref, error) {
			return q.Delay(catalog.Scale, math.MaxInt64, float32(0.5), -128, 0xffff) // right: the bounds themselves
		},
		func() (*delayed.Ref, error) {
			return q.Delay(catalog.Scale, 'x', float32(week), '\x7f', uint8('y')) // right: runes are integers
		},
		func() (*delayed.Ref, error) {
			return q.Delay(loans.Fine, "c1", cents, 1.0, (*time.Time)(nil)) // right: a pointer may be nil
		},
		func() (*delayed.Ref, error) {
			return q.Delay(loans.Fine, loans.Card("c1"), -5, math.Pi, &time.Time{}) // right: Card is an alias
		},
		func() (*delayed.Ref, error) {
			return q.Delay(notify.Later, "c1", 30*time.Second) // right: a duration for a duration
		},
		func() (*delayed.Ref, error) {
			return q.Delay(notify.Seconds, "c1", int64(late/time.Second)) // right: converted, in seconds
		},
		func() (*delayed.Ref, error) {
			return q.Delay(notify.Seconds, "c1", late.Milliseconds()/1000) // right: the same
		},
		func() (*delayed.Ref, error) {
			soon := q.With(delayed.In(0), delayed.Timeout(0)) // right: zero has no unit
			return soon.Delay(notify.Seconds, "c1", 0)
		},
		func() (*delayed.Ref, error) {
			wait := time.Duration(days) * time.Hour
			later := q.With(delayed.In(wait), delayed.TTL(wait+1e9)) // right: 1e9 ns added
			return later.Delay(notify.Later, "c1", late)
		},
	}
	for _, call := range calls {
		if _, err := call(); err != nil {
			return err
		}
	}
	return nil
}
