package engine

import (
	"errors"
	"time"
)

// handlerSays is what a handler may say instead of "it failed".
type handlerSays uint8

// What handlers say.
const (
	saysNothing handlerSays = iota
	SaysDiscard
	SaysDrop
	SaysRetryIn
	SaysSnooze
)

// outcomeError is an error by which a handler says what shall become of its task.
type outcomeError struct {
	says handlerSays
	wait time.Duration
	err  error // may be nil
}

// Say returns an error by which a handler says what shall become of its task.
func Say(says handlerSays, wait time.Duration, err error) error {
	return &outcomeError{says, wait, err}
}

// Error implements error.
func (e *outcomeError) Error() string {
	switch {
	case e.err != nil:
		return e.err.Error()
	case e.says == SaysSnooze:
		return "delayed: snoozed for " + e.wait.String()
	default:
		return "delayed: dropped"
	}
}

// Unwrap returns the handler's own error.
func (e *outcomeError) Unwrap() error { return e.err }

// Says returns discard, drop, retry in or snooze, for middleware: docs/HOOKS.md.
func (e *outcomeError) Says() string {
	return [...]string{SaysDiscard: "discard", SaysDrop: "drop", SaysRetryIn: "retry in", SaysSnooze: "snooze"}[e.says]
}

// said returns what err says about the task. If several errors in its tree say something, the outermost one wins.
func said(err error) (handlerSays, time.Duration) {
	var o *outcomeError
	if errors.As(err, &o) {
		return o.says, o.wait
	}
	return saysNothing, 0
}
