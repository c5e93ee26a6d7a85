// Package jobs knows all functions that the workers of the library run.
package jobs

import (
	"errors"

	"github.com/godelayed/delayed"

	"example.com/app/blind/nearmisses/catalog"
	"example.com/app/blind/nearmisses/exec"
	"example.com/app/blind/nearmisses/loans"
	"example.com/app/blind/nearmisses/notify"
)

// Loans are the functions of the loans.
func Loans() []any { return []any{loans.Prolong, loans.Return, loans.Begin, loans.Sweep} }

// All are further functions.
var All = []any{notify.Text, notify.Many, notify.Each, catalog.MergeBooks, catalog.Count}

// Registrar is what a worker does with functions.
type Registrar interface {
	Register(fns ...any) error
	RegisterMethods(receiver any) error
}

// Register registers all functions with a worker.
func Register(w Registrar, desk *notify.Desk) error {
	return errors.Join(
		w.Register(Loans()...),
		w.Register(All...),
		w.Register(exec.Command), // right: this exec is the library's own
		w.RegisterMethods(desk),
	)
}

// Night registers what runs at night.
func Night(w *delayed.Worker) error {
	for _, fn := range []any{exec.Label, catalog.Notes} {
		if err := w.Register(fn); err != nil {
			return err
		}
	}
	return nil
}
