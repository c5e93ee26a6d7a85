package api

import (
	"context"
	"fmt"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/blind/mistakes/mail"
	"example.com/app/blind/mistakes/media"
	"example.com/app/blind/mistakes/search"
)

const (
	posterQuality = 300
	grace         = 5 * time.Minute
)

// Event is an evening in a hall.
type Event struct {
	ID       int64
	Picture  string
	Versions []int64
	Sales    []string
}

// Catalog publishes events. Its queue is embedded.
type Catalog struct {
	*delayed.Queue
	Index string
}

// Publish makes an event visible.
func (c *Catalog) Publish(ctx context.Context, e Event) error {
	if _, err := c.Delay(media.Resize, e.Picture, 800, 600, posterQuality); err != nil { // want `media.Resize: argument 4: expected uint8, found int 300`
		return err
	}
	if _, err := c.Delay(search.Boost, e.ID, 1.5); err != nil { // want `search.Boost: argument 2: expected int, found float64 1.5`
		return err
	}
	if _, err := c.DelayContext(ctx, search.Index, c.Index, 1, 2, "3"); err != nil { // want `search.Index: argument 4: expected int64, found string`
		return err
	}
	if _, err := c.DelayContext(ctx, search.Index, e.Versions); err != nil { // want `search.Index: argument 1: expected string, found ..int64`
		return err
	}
	if _, err := c.Delay(media.Thumbnail, e.Picture, 80, 60); err != nil { // want `media.thumbnail: expected 4 arguments .string, uint16, uint16, uint8., found 3`
		return err
	}
	if _, err := c.Delay(media.SumInts, e.Sales); err != nil { // want `media.sum.int: argument 1: expected ..int, found ..string`
		return err
	}
	_, err := c.Delay(media.NewPoster, e.ID) // want `media.Poster: expected 2 arguments .int64, string., found 1`
	return err
}

// Announce tells all customers.
func (c *Catalog) Announce(ctx context.Context, orders []Order) error {
	tasks := make([]*delayed.Task, 0, len(orders))
	for _, o := range orders {
		tasks = append(tasks, delayed.Call(mail.Confirm, o, o.Lang)) // want `mail.Confirm: argument 1: expected int64, found api.Order`
	}
	refs, err := c.DelayMany(ctx, tasks...)
	if err != nil {
		return fmt.Errorf("announced %d of %d: %w", len(refs), len(orders), err)
	}
	_, err = c.With(delayed.MaxRetry(2)).Delay(mail.Digest, "berlin", "today", len(orders)) // want `mail.Digest: expected 2 arguments .string, string., found 3`
	return err
}

// Withdraw makes an event invisible.
func (c *Catalog) Withdraw(ctx context.Context, e Event) error {
	one := c.With(delayed.Group("boost"))
	if _, err := one.DelayContext(ctx, search.Boost, e.ID, 0); err != nil { // want `search.Boost: expected a variadic function or one whose last parameter is a slice other than ..byte`
		return err
	}
	urgent := c.With(delayed.Front(), delayed.In(grace)) // want `Front with In, At or Debounce: a scheduled task joins the end of its queue when it is due`
	_, err := urgent.DelayContext(ctx, search.Index, c.Index, e.ID)
	return err
}
