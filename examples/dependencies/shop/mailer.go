// Package shop has handlers that need a database and a mail server.
package shop

import (
	"context"
	"fmt"
)

// Database maps orders to customers. It stands for *sql.DB.
type Database map[int]string

// Customer returns the address of an order's customer.
func (d Database) Customer(_ context.Context, order int) (string, error) {
	address, ok := d[order]
	if !ok {
		return "", fmt.Errorf("there is no order %d", order)
	}
	return address, nil
}

// Mailer has what its methods need. They run concurrently, so all fields must be safe for concurrent use.
type Mailer struct {
	Orders Database
	Send   func(ctx context.Context, to, text string) error
}

// Confirm tells a customer that we have the order. The task contains only the order's number.
func (m *Mailer) Confirm(ctx context.Context, order int) error {
	to, err := m.Orders.Customer(ctx, order)
	if err != nil {
		return err
	}
	return m.Send(ctx, to, fmt.Sprintf("We have your order %d.", order))
}
