package delayed

import (
	"errors"
	"fmt"
)

// What all errors of this package wrap.
var (
	errFunction  = errors.New("delayed: function cannot be delayed")
	errArguments = errors.New("delayed: arguments do not fit the function")
)

// misfitError says which argument does not fit.
type misfitError struct {
	Func string // path of the function
	// of the argument, from 0 and without a leading context, where the text counts from 1; -1 when their number is
	// wrong
	Index int
	Want  string // what the function takes
	Got   string // what was found
}

// Error implements error.
func (e *misfitError) Error() string {
	if e.Index < 0 {
		return fmt.Sprintf("delayed: %s: expected %s, found %s", e.Func, e.Want, e.Got)
	}
	return fmt.Sprintf("delayed: %s: argument %d: expected %s, found %s", e.Func, e.Index+1, e.Want, e.Got)
}

// Unwrap makes errors.Is(err, errArguments) true.
func (e *misfitError) Unwrap() error { return errArguments }

// functionError says what is wrong with a function: what was expected, what was found, what to do.
func functionError(subject, want, got, do string) error {
	return fmt.Errorf("%w: %s: expected %s, found %s; %s", errFunction, subject, want, got, do)
}
