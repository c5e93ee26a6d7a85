package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect/document"
)

func yesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVarP(yes, "yes", "y", false, "do not ask")
}

// warn tells of something that has not stopped the command.
func (a *app) warn(err error) {
	fmt.Fprintln(a.Err, "warning: "+term.Printable(document.ErrorText(err.Error())))
}

// confirm returns an error unless somebody agrees.
func (a *app) confirm(ctx context.Context, yes bool, question string) error {
	switch {
	case yes:
		return nil
	case !a.Asks:
		return &codeError{exitRefused, question + " Nobody can be asked without a terminal: give --yes"}
	case !term.Confirm(ctx, a.In, a.Err, question):
		if ctx.Err() != nil {
			return errInterrupted
		}
		return &codeError{exitRefused, "not confirmed: nothing was done"}
	}
	return nil
}
