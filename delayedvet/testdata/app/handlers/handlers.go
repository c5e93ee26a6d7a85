// Package handlers has the handlers of a shop, which planted and correct delay.
package handlers

import (
	"context"
	"time"

	"github.com/godelayed/delayed"
)

type (
	OrderID  int64
	Currency string

	Line struct {
		SKU   string
		Count uint16
	}

	Order struct {
		ID       OrderID
		Lines    []Line
		Total    int64
		Currency Currency
		Placed   time.Time
	}

	Session struct {
		User  int64
		token string
	}

	Visit struct {
		User  int64
		cache map[string]string `msgpack:"-"`
	}

	Number interface{ ~int | ~int64 | ~float64 }
)

type Store struct{ name string }

func (s *Store) Save(ctx context.Context, o Order) error { return nil }
func (s *Store) Sum(ids ...OrderID) (int64, error)       { return 0, nil }

func Confirm(ctx context.Context, o *Order, lang string) error         { return nil }
func Ship(ctx context.Context, id OrderID, carrier string, kg float32) {}
func Refund(id OrderID, cents int64, currency Currency) error          { return nil }
func Remind(id OrderID, after time.Duration) error                     { return nil }
func Reindex(ctx context.Context, shop string, ids ...OrderID) error   { return nil }
func Thumbnail(path string, width, height uint16) (string, error)      { return "", nil }
func Upload(name string, data []byte, tags map[string]string) error    { return nil }
func Rate(stars uint8, text string)                                    {}
func Track(event string, fields map[string]any)                        {}
func Log(values ...any)                                                {}
func Login(s Session)                                                  {}
func Look(v Visit)                                                     {}
func Notify(done chan<- bool)                                          {}
func Visit2(each func(Order) error)                                    {}
func Render(w interface{ Write([]byte) (int, error) }, o Order) error  { return nil }
func Transform(in complex64)                                           {}
func Report(year int, month time.Month, flags ...bool) (*Order, error) { return nil, nil }
func Watch(id OrderID) (<-chan Order, error)                           { return nil, nil }
func Totals(ids []OrderID, weights map[OrderID]float64) (int64, error) { return 0, nil }
func Merge[T Number](a, b []T) ([]T, error)                            { return append(a, b...), nil }
func Wait(seconds int64)                                               {}
func Clean(ctx context.Context, olderThan time.Time, dry bool)         {}

var (
	// MergeIDs is an instance with a name.
	MergeIDs = delayed.Func(Merge[int64], delayed.Name("shop.merge"), delayed.MaxRetry(3))
	// Single has a lock.
	Single = delayed.Func(Reindex, delayed.Unique(time.Hour))
)
