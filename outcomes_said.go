package delayed

import (
	"errors"
	"time"
)

// handlerSays is what a handler may say beside "it failed".
type handlerSays uint8

const (
	saysNothing handlerSays = iota
	saysDiscard
	saysDrop
	saysRetryIn
	saysSnooze
)

// outcomeError is the error by which a handler says what shall become of its task.
type outcomeError struct {
	says handlerSays
	wait time.Duration
	err  error // may be nil
}

// say makes an error by which a handler says what shall become of its task.
func say(says handlerSays, wait time.Duration, err error) error {
	return &outcomeError{says, wait, err}
}

// Error implements error.
func (e *outcomeError) Error() string {
	switch {
	case e.err != nil:
		return e.err.Error()
	case e.says == saysSnooze:
		return "delayed: snoozed for " + e.wait.String()
	default:
		return "delayed: dropped"
	}
}

// Unwrap returns the handler's own error.
func (e *outcomeError) Unwrap() error { return e.err }

// said returns what a handler says by its error; the outermost holds.
func said(err error) (handlerSays, time.Duration) {
	var o *outcomeError
	if errors.As(err, &o) {
		return o.says, o.wait
	}
	return saysNothing, 0
}
