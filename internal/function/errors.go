package function

import (
	"errors"
	"fmt"
)

// Every error of this package wraps one of these.
var (
	ErrFunction  = errors.New("delayed: function cannot be delayed")
	ErrArguments = errors.New("delayed: wrong call")
)

// ArgumentError reports which argument does not fit.
type ArgumentError struct {
	Func string // path of the function
	// Index of the argument, from 0, without a leading context; the text of the error counts from 1. -1: their number
	// is wrong.
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

// Refusal returns the error for a func value that is no usable function.
func Refusal(subject, want, got, do string) error {
	return fmt.Errorf("%w: %s: expected %s, found %s; %s", ErrFunction, subject, want, got, do)
}
