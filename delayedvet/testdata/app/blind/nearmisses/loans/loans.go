// Package loans keeps the loans of a library.
package loans

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrUnknown says that there is no such loan.
var ErrUnknown = errors.New("loans: unknown")

// Types of arguments.
type (
	// ID is the number of a loan.
	ID int64
	// Card is the number of a reader's card.
	Card = string
	// Shelf is a shelf of a hall.
	Shelf uint8
	// Option is no option of the queue, but a wish of the reader.
	Option struct{ Name, Value string }
)

// Copy is a copy of a book.
type Copy struct {
	Book  int64
	Shelf Shelf
	mu    sync.Mutex `msgpack:"-"`
	seen  time.Time  `msgpack:"-"`
}

// Base is what all loans have.
type Base struct {
	From time.Time
	Days int
}

// Loan is one loan.
type Loan struct {
	Base
	ID    ID
	Card  Card
	Notes map[string][]string
	Next  *Loan
}

// Prolong gives a reader more days.
func Prolong(_ context.Context, id ID, days int) error {
	if id == 0 {
		return fmt.Errorf("%w: %d days", ErrUnknown, days)
	}
	return nil
}

// Return takes a book back.
func Return(id ID, shelf Shelf) (time.Time, error) {
	if id == 0 {
		return time.Time{}, fmt.Errorf("%w: for shelf %d", ErrUnknown, shelf)
	}
	return time.Unix(int64(id), 0), nil
}

// Move puts a copy on another shelf.
func Move(c *Copy, to Shelf) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Shelf, c.seen = to, time.Now()
}

// Begin begins a loan.
func Begin(_ context.Context, l Loan, wishes ...Option) error {
	if l.Card == "" {
		return fmt.Errorf("%w: %d wishes", ErrUnknown, len(wishes))
	}
	return nil
}

// Ask asks for books with wishes in a context that somebody has written down.
func Ask(_ context.Context, context string, wish Option, within time.Duration) error {
	if context == "" {
		return fmt.Errorf("%w: %s within %v", ErrUnknown, wish.Name, within)
	}
	return nil
}

// Sweep forgets old loans and says how many there were.
func Sweep() int { return 0 }

// Fine takes money from a card: so many cents, at a rate, since a day.
func Fine(card Card, cents int32, rate float64, since *time.Time) error {
	if card == "" {
		return fmt.Errorf("%w: %d cents, %f since %v", ErrUnknown, cents, rate, since)
	}
	return nil
}
