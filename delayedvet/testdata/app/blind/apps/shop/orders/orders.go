// Package orders keeps the orders of the shop.
package orders

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/godelayed/delayed"
)

// ErrUnknown says that there is no such order.
var ErrUnknown = errors.New("orders: unknown order")

// ErrPaid says that an order has been paid already.
var ErrPaid = errors.New("orders: paid already")

type (
	// ID is the number of an order.
	ID int64
	// Cents is an amount of money.
	Cents int64
)

// Line is a line of an order.
type Line struct {
	SKU      string
	Quantity uint16
	Price    Cents
}

// Order is what a customer has ordered.
type Order struct {
	ID       ID
	Customer int64
	Email    string
	Lang     string
	Lines    []Line
	Placed   time.Time
	Coupon   *string
}

// Total returns the price of all lines.
func (o *Order) Total() Cents {
	var total Cents
	for _, l := range o.Lines {
		total += l.Price * Cents(l.Quantity)
	}
	return total
}

// Store has all orders.
type Store struct {
	mu     sync.RWMutex
	orders map[ID]Order
	paid   map[ID]Cents
	next   ID
}

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{orders: map[ID]Order{}, paid: map[ID]Cents{}}
}

// Add stores an order and returns its number.
func (s *Store) Add(o Order) ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	o.ID = s.next
	s.orders[o.ID] = o
	return o.ID
}

// Find returns an order.
func (s *Store) Find(id ID) (Order, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	o, ok := s.orders[id]
	if !ok {
		return Order{}, fmt.Errorf("%w %d", ErrUnknown, id)
	}
	return o, nil
}

// Cashier charges customers. Its methods are delayed.
type Cashier struct {
	store  *Store
	charge func(ctx context.Context, key string, customer int64, amount Cents) error
}

// NewCashier returns a cashier that charges by a service.
func NewCashier(s *Store, charge func(context.Context, string, int64, Cents) error) *Cashier {
	return &Cashier{store: s, charge: charge}
}

// Charge takes the money for an order, once.
func (c *Cashier) Charge(ctx context.Context, id ID) (Cents, error) {
	o, err := c.store.Find(id)
	if err != nil {
		return 0, delayed.Archive(err)
	}
	c.store.mu.RLock()
	_, paid := c.store.paid[id]
	c.store.mu.RUnlock()
	if paid {
		return 0, delayed.Drop(ErrPaid)
	}
	key := fmt.Sprintf("order-%d", id)
	if task := delayed.TaskFromContext(ctx); task != nil {
		key = task.IdempotencyKey()
	}
	if err := c.charge(ctx, key, o.Customer, o.Total()); err != nil {
		return 0, delayed.RetryIn(time.Minute, err)
	}
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	c.store.paid[id] = o.Total()
	return o.Total(), nil
}

// Refund gives the money back, or a part of it.
func (c *Cashier) Refund(ctx context.Context, id ID, part Cents, reason string) error {
	o, err := c.store.Find(id)
	if err != nil {
		return delayed.Archive(err)
	}
	if part > o.Total() {
		return delayed.Archive(fmt.Errorf("orders: refund of %d for order %d of %d: %s", part, id, o.Total(), reason))
	}
	return c.charge(ctx, fmt.Sprintf("refund-%d-%d", id, part), o.Customer, -part)
}
