// Package notify writes to readers.
package notify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godelayed/delayed"
)

// ErrNobody says that a message has no receiver.
var ErrNobody = errors.New("notify: nobody to write to")

// Text writes a text; its values are put into it.
func Text(_ context.Context, card, format string, values ...any) error {
	if card == "" {
		return fmt.Errorf("%w: "+format, append([]any{ErrNobody}, values...)...)
	}
	return nil
}

// Many writes to many readers.
func Many(_ context.Context, text string, cards []string) error {
	if len(cards) == 0 {
		return fmt.Errorf("%w: %s", ErrNobody, text)
	}
	return nil
}

// Each writes to each reader.
func Each(text string, cards ...string) error { return Many(context.Background(), text, cards) }

// Later writes when some time has passed.
func Later(_ context.Context, card string, wait time.Duration) error {
	if card == "" {
		return fmt.Errorf("%w after %v", ErrNobody, wait)
	}
	return nil
}

// Seconds writes when so many seconds have passed.
func Seconds(ctx context.Context, card string, seconds int64) error {
	return Later(ctx, card, time.Duration(seconds)*time.Second)
}

// Desk writes for a desk of the library.
type Desk struct {
	Name  string
	queue *delayed.Queue
}

// NewDesk returns a desk.
func NewDesk(name string, q *delayed.Queue) *Desk { return &Desk{Name: name, queue: q} }

// Call calls a reader.
func (d *Desk) Call(ctx context.Context, card string, times int) error {
	if times == 0 {
		return nil
	}
	again := d.queue.With(delayed.In(time.Hour))
	_, err := again.DelayContext(ctx, (*Desk).Call, card, times-1)
	return err
}

// Write writes to a reader.
func (d *Desk) Write(ctx context.Context, card, text string) error { return Text(ctx, card, text) }

// Head is a desk that may do more.
type Head struct {
	*Desk
}

// Close closes all desks.
func (h Head) Close(context.Context) error {
	if h.Desk == nil {
		return ErrNobody
	}
	return nil
}
