// Package mail sends the mails of the ticket office.
package mail

import (
	"context"
	"errors"
	"time"
)

// ErrNoReceiver says that a mail has nobody to go to.
var ErrNoReceiver = errors.New("mail: no receiver")

// Confirm tells a customer that the order is paid.
func Confirm(_ context.Context, orderID int64, lang string) error {
	return send(orderID, "confirm."+lang)
}

// Remind reminds a customer of the event, some time before it.
func Remind(_ context.Context, orderID int64, before time.Duration) error {
	return send(orderID, before.String())
}

// Hold tells a customer for how many minutes the seats are kept.
func Hold(_ context.Context, orderID, minutes int64) error {
	return send(orderID*minutes, "hold")
}

// Digest sends the numbers of a day to an office.
func Digest(_ context.Context, office, day string) error {
	if office == "" {
		return ErrNoReceiver
	}
	return send(int64(len(day)), "digest")
}

// Mailer sends mails by a service.
type Mailer struct {
	Service string
}

// Send sends one mail to a customer.
func (m *Mailer) Send(_ context.Context, customerID int64, subject string) error {
	return send(customerID, m.Service+subject)
}

func send(to int64, text string) error {
	if to == 0 || text == "" {
		return ErrNoReceiver
	}
	return nil
}
