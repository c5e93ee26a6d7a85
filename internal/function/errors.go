package function

import (
	"errors"
	"fmt"
)

// What all errors of this package wrap.
var (
	ErrFunction  = errors.New("delayed: function cannot be delayed")
	ErrArguments = errors.New("delayed: wrong call")
)

// ArgumentError says which argument does not fit.
type ArgumentError struct {
	Func string // path of the function
	// of the argument, from 0 and without a leading context, where the text counts from 1; -1 when their number is
	// wrong
	Index int
	Want  string // what the function takes
	Got   string // what was found
}

// Error implements error.
func (e *ArgumentError) Error() string {
	if e.Index < 0 {
		return fmt.Sprintf("delayed: %s: expected %s, found %s", e.Func, e.Want, e.Got)
	}
	return fmt.Sprintf("delayed: %s: argument %d: expected %s, found %s", e.Func, e.Index+1, e.Want, e.Got)
}

// Unwrap makes errors.Is(err, ErrArguments) true.
func (e *ArgumentError) Unwrap() error { return ErrArguments }

// Refusal says what is wrong with a function: what was expected, what was found, what to do.
func Refusal(subject, want, got, do string) error {
	return fmt.Errorf("%w: %s: expected %s, found %s; %s", ErrFunction, subject, want, got, do)
}
