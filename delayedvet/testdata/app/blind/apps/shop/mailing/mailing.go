// Package mailing writes to customers.
package mailing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"text/template"
	"time"

	"example.com/app/blind/apps/shop/orders"
)

// ErrAddress says that an address is empty.
var ErrAddress = errors.New("mailing: no address")

var confirmation = template.Must(template.New("confirmation").Parse(
	"Order {{.ID}}\n{{range .Lines}}{{.Quantity}} x {{.SKU}}\n{{end}}Total: {{.Total}}\n"))

// Confirm confirms an order.
func Confirm(ctx context.Context, o *orders.Order) error {
	var text bytes.Buffer
	if err := confirmation.Execute(&text, o); err != nil {
		return fmt.Errorf("mailing: confirm order %d: %w", o.ID, err)
	}
	return send(ctx, o.Email, text.String())
}

// Remind reminds a customer of a full cart.
func Remind(ctx context.Context, email string, age time.Duration, skus ...string) error {
	return send(ctx, email, fmt.Sprintf("Your cart waits for %v: %v", age.Round(time.Hour), skus))
}

// Newsletter writes to one customer.
func Newsletter(ctx context.Context, email, subject string, values map[string]any) error {
	return send(ctx, email, fmt.Sprintf("%s: %v", subject, values))
}

// Digest writes the numbers of a day to those who run the shop.
func Digest(ctx context.Context, to []string) error {
	for _, email := range to {
		if err := send(ctx, email, "Digest of "+time.Now().Format(time.DateOnly)); err != nil {
			return err
		}
	}
	return nil
}

func send(ctx context.Context, email, text string) error {
	if email == "" {
		return ErrAddress
	}
	if text == "" {
		return fmt.Errorf("mailing: nothing to send to %s", email)
	}
	return ctx.Err()
}
