package engine

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Causes why the contexts of handlers end.
var (
	ErrLost     = errors.New("delayed: claim lost")
	ErrCanceled = errors.New("delayed: task was canceled")
	ErrTimeout  = errors.New("delayed: handler takes too long")
	ErrShutdown = errors.New("delayed: worker is shutting down")
)

// RunningError says which handlers did not return although their contexts were cancelled.
type RunningError struct {
	Funcs []string // paths of the functions, one for each running task
}

// Error implements error.
func (e *RunningError) Error() string {
	return fmt.Sprintf("delayed: %d handlers still run after shutdown: %s", len(e.Funcs), strings.Join(e.Funcs, ", "))
}

// StuckError says which handlers have stopped the worker by ignoring that their contexts have ended.
type StuckError struct {
	Funcs []string // paths of the functions, one for each handler
	IDs   []string // ids of their tasks in the same order, "" for tasks without an id
}

// Error implements error.
func (e *StuckError) Error() string {
	return fmt.Sprintf("delayed: %d handlers are stuck: %s; let them return when their contexts end", len(e.Funcs),
		strings.Join(e.Funcs, ", "))
}

// timeoutError wraps the error of a handler that has returned it after its time limit.
type timeoutError struct {
	limit time.Duration
	err   error
}

// Error implements error.
func (e *timeoutError) Error() string {
	return fmt.Sprintf("delayed: handler took longer than %v: %v", e.limit.Round(time.Millisecond), e.err)
}

// Unwrap returns ErrTimeout and the handler's error.
func (e *timeoutError) Unwrap() []error { return []error{ErrTimeout, e.err} }
