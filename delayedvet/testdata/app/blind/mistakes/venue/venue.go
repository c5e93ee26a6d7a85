// Package venue talks to the systems of the halls.
package venue

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/godelayed/delayed"
)

// Seat is a seat of a hall.
type Seat struct {
	Row, Number int
	price       int64
}

// Price returns the price in cents.
func (s Seat) Price() int64 { return s.price }

// Door is the state of a door.
type Door struct {
	mu   sync.Mutex
	open bool
}

// Watch sends the events of a hall.
func Watch(hall string, events chan<- string) error {
	events <- hall
	return nil
}

// Import reads the seats of a hall.
func Import(_ context.Context, hall string, r io.Reader) error {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		if lines.Text() == "" {
			return fmt.Errorf("venue: %s: line %d is empty", hall, n)
		}
	}
	return lines.Err()
}

// Release gives seats back.
func Release(orderID int64, ctx context.Context) error { //nolint:revive // an old signature
	return fmt.Errorf("order %d: %w", orderID, ctx.Err())
}

// Count counts the seats of a hall.
func Count(hall string) (free, sold int, err error) {
	return len(hall), 0, nil
}

// Reserve takes a seat.
func Reserve(_ context.Context, s Seat) error {
	if s.Price() < 0 {
		return fmt.Errorf("venue: seat %d/%d has no price", s.Row, s.Number)
	}
	return nil
}

// Lock locks a door.
func Lock(d *Door) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = false
}

// OpenHalls starts what a hall needs in the evening.
func OpenHalls(ctx context.Context, q *delayed.Queue, halls map[string]io.Reader) error {
	for hall, seats := range halls {
		events := make(chan string)
		if _, err := q.Delay(Watch, hall, events); err != nil { // want `venue.Watch: .* found parameter 2: chan<- string cannot travel in a task`
			return err
		}
		if _, err := q.DelayContext(ctx, Import, hall, seats); err != nil { // want `venue.Import: .* found parameter 2: io.Reader cannot travel in a task`
			return err
		}
		if _, err := q.Delay(Count, hall); err != nil { // want `venue.Count: expected no result, error, T or .T, error.`
			return err
		}
	}
	return nil
}

// Close gives back what was not fetched.
func Close(ctx context.Context, q *delayed.Queue, orders []int64, seats []Seat) error {
	for _, id := range orders {
		if _, err := q.DelayContext(ctx, Release, id); err != nil { // want `venue.Release: expected a context as the first parameter or none, found context.Context`
			return err
		}
	}
	for _, s := range seats {
		if _, err := q.DelayContext(ctx, Reserve, s); err != nil { // want `venue.Reserve: .* found parameter 1: field price of venue.Seat is not exported`
			return err
		}
	}
	_, err := q.Delay(Lock, &Door{open: true}) // want `venue.Lock: .* found parameter 1: venue.Door .in .venue.Door. cannot travel in a task`
	return err
}
