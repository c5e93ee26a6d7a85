// Package shop is what an application might do in the background. Its functions know nothing of queues, but for the
// progress that Import reports.
package shop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/godelayed/delayed"
)

// Size is the size of a picture in pixels.
type Size struct{ Width, Height int }

// Totals are the sales of a day.
type Totals struct {
	Orders int
	Cents  int64
}

// Welcome sends a mail. It is fast.
func Welcome(ctx context.Context, user int64, language string) error {
	return work(ctx, 5*time.Millisecond, 40*time.Millisecond)
}

// Thumbnail makes a small picture. It takes a moment, and returns a result.
func Thumbnail(ctx context.Context, photo string, width int) (Size, error) {
	return Size{width, width * 3 / 4}, work(ctx, 150*time.Millisecond, 900*time.Millisecond)
}

// Charge charges a credit card. Every fourth time the bank does not answer, and some cards have no money on them.
func Charge(ctx context.Context, order, cents int64) error {
	if err := work(ctx, 50*time.Millisecond, 300*time.Millisecond); err != nil {
		return err
	}
	switch {
	case order%11 == 0:
		return delayed.Archive(fmt.Errorf("order %d: the card is declined", order))
	case rand.IntN(4) == 0:
		return fmt.Errorf("order %d: the bank does not answer: timeout after 300 ms", order)
	}
	return nil
}

// Invoice writes an invoice. It panics for orders without lines.
func Invoice(ctx context.Context, order int64, lines []string) error {
	if first := lines[0]; first == "" {
		return fmt.Errorf("order %d: the first line is empty", order)
	}
	return work(ctx, 20*time.Millisecond, 80*time.Millisecond)
}

// Import reads a file of products, row by row, and reports how far it is.
func Import(ctx context.Context, file string, rows int64) error {
	for row := int64(0); row < rows; row += 50 {
		if err := delayed.Progress(ctx, row, rows, "reading "+file); err != nil {
			return err
		}
		if err := work(ctx, 200*time.Millisecond, 600*time.Millisecond); err != nil {
			return err
		}
	}
	return delayed.Progress(ctx, rows, rows, "done")
}

// Index updates the search index for many products at once.
func Index(ctx context.Context, language string, products ...int64) error {
	return work(ctx, 100*time.Millisecond, 300*time.Millisecond)
}

// Report sums up the sales of today.
func Report(ctx context.Context, currency string) (Totals, error) {
	return Totals{Orders: rand.IntN(900), Cents: rand.Int64N(1_000_000)},
		work(ctx, 300*time.Millisecond, 600*time.Millisecond)
}

// work takes some time, as real work would.
func work(ctx context.Context, least, most time.Duration) error {
	timer := time.NewTimer(least + rand.N(most-least))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
