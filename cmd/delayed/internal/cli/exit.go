package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
)

// The exit codes. Monitors have others: see monitor.go.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitRefused     = 4
	exitInterrupted = 130
)

const exitHelp = `Exit codes:
  0    done
  1    failed: Redis did not answer, or an action failed for a task; doctor: there are problems
  2    wrong command, flag, argument, environment or configuration
  3    no such queue, task, worker or entry
  4    not confirmed: the answer was no, or nobody could be asked and --yes was not given
  130  interrupted: what was done until then is done
monitor has the codes of monitoring plug-ins: 0 ok, 1 warning, 2 critical, 3 unknown.`

// usageError is an error of whoever has written the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// misused makes an error a usageError, unless it is nil.
func misused(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// codeError is an error with an exit code of its own. Without a text, nothing is printed about it.
type codeError struct {
	code int
	text string
}

func (e *codeError) Error() string { return e.text }

var (
	errInterrupted = &codeError{exitInterrupted, "interrupted"}
	errSilent      = &codeError{exitFailed, ""}
	errNotFound    = errors.New("not found")
)

// exit prints an error and returns its exit code.
func (a *app) exit(err error) int {
	if err == nil {
		return exitDone
	}
	code := exitFailed
	var own *codeError
	switch {
	case errors.As(err, &own):
		code = own.code
	case errors.As(err, new(usageError)):
		code = exitUsage
	case errors.Is(err, inspect.ErrNotFound), errors.Is(err, delayed.ErrNoEntry), errors.Is(err, errNotFound):
		code = exitNotFound
	case errors.Is(err, context.Canceled):
		code = exitInterrupted
	}
	for _, e := range flatten(err) {
		if text := e.Error(); text != "" {
			fmt.Fprintln(a.Err, "delayed:", term.Clip(document.ErrorText(text), mostError))
		}
	}
	if refused(err.Error()) {
		fmt.Fprintln(a.Err, "delayed: the user of Redis may not do that: SECURITY.md says what each kind of user needs")
	}
	return code
}

// refused reports whether Redis has refused a command or key to the user of the URL. Scripts that may not call a
// command fail with an error of another kind than single commands, in other words since Redis 7.2 and in Valkey.
func refused(text string) bool {
	return strings.Contains(text, "NOPERM") || strings.Contains(text, "user executing the script can't") ||
		strings.Contains(text, "ACL failure in script")
}

// mostError is how much of an error is printed.
const mostError = 2000

// flatten returns the errors of errors.Join, so that each gets a line.
func flatten(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || fmt.Sprintf("%T", err) != "*errors.joinError" { // fmt.Errorf also wraps several
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, flatten(e)...)
	}
	return all
}

// join is errors.Join that keeps a single error as it is.
func join(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

func yesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVarP(yes, "yes", "y", false, "do not ask")
}

// warn reports an error that has not stopped the command.
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
