// Package setup registers functions for programs.
package setup

import (
	"errors"

	"github.com/godelayed/delayed"

	"example.com/app/mail"
)

var handlers = []any{mail.Digest, mail.SumInts}

// Register registers what all programs have.
func Register(w *delayed.Worker) error {
	return errors.Join(w.Register(handlers...), w.RegisterMethods(&mail.Mailer{}))
}
