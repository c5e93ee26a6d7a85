// Package signup is an application that delays work. Its tests show how to use package delayedtest: see signup_test.go.
package signup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godelayed/delayed"
)

// Mailer sends mails. It has what its methods need; only their arguments travel.
type Mailer struct {
	Send  func(to, text string) error
	Queue *delayed.Queue
}

// Welcome greets a new user.
func (m *Mailer) Welcome(user string) error {
	return m.Send(user, "Welcome, "+user)
}

// Remind asks a user to confirm, three times, a day apart.
func (m *Mailer) Remind(ctx context.Context, user string, times int) error {
	if err := m.Send(user, fmt.Sprintf("Reminder %d, %s", times, user)); err != nil || times == 3 {
		return err
	}
	_, err := m.Queue.With(delayed.In(24*time.Hour)).DelayContext(ctx, (*Mailer).Remind, user, times+1)
	return err
}

// ErrBusy means that the service cannot take new users now.
var ErrBusy = errors.New("signup: busy, try again later")

// SignUp takes a new user.
func SignUp(ctx context.Context, q *delayed.Queue, user string) error {
	if _, err := q.DelayContext(ctx, (*Mailer).Welcome, user); err != nil {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	_, err := q.With(delayed.In(24*time.Hour), delayed.MaxRetry(5)).DelayContext(ctx, (*Mailer).Remind, user, 1)
	return err
}
