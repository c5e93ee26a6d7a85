// Package mail has handlers for the other packages.
package mail

import (
	"context"
	"time"

	"github.com/godelayed/delayed"
)

// UserID is a number with a type of its own.
type UserID int64

// Order is what a handler takes as a whole.
type Order struct {
	ID    UserID
	Items []Item
	Note  *string
}

// Item is part of an Order.
type Item struct {
	SKU string
	N   int8
}

// Mailer has handlers as methods.
type Mailer struct{ From string }

func (m *Mailer) Send(ctx context.Context, id int64) error { return nil }
func (m Mailer) Copy(to string)                            {}
func (m *Mailer) hidden(int)                               {}

func Welcome(ctx context.Context, userID int64, lang string) error { return nil }
func Digest(context.Context) error                                 { return nil }
func Index(tenant string, ids ...int64)                            {}
func Level(uint8)                                                  {}
func Place(Order)                                                  {}
func PlaceAt(*Order)                                               {}
func Owner(UserID)                                                 {}
func Ratio(float32)                                                {}
func Pause(time.Duration)                                          {}
func Seconds(int64)                                                {}
func Anything(any)                                                 {}
func Sum[T int | int64 | float64](a, b T) T                        { return a + b }

// SumInts is an instance with a name.
var SumInts = delayed.Func(Sum[int], delayed.Name("sum.int"), delayed.Optional(1))

// Once is a function with a lock.
var Once = delayed.Func(Digest, delayed.Unique(time.Hour))
