package delayed

import (
	"errors"
	"fmt"
	"strings"
)

// Causes of the contexts of handlers.
var (
	errLost     = errors.New("delayed: claim lost")
	errCanceled = errors.New("delayed: task was canceled")
	errTimeout  = errors.New("delayed: handler takes too long")
	errShutdown = errors.New("delayed: worker is shutting down")
)

// runningError says which handlers did not return although their contexts were cancelled.
type runningError struct {
	Funcs []string // paths of the functions, one for each running task
}

// Error implements error.
func (e *runningError) Error() string {
	return fmt.Sprintf("delayed: %d handlers still run after shutdown: %s", len(e.Funcs), strings.Join(e.Funcs, ", "))
}

// stuckError says which handlers have stopped the worker because they ignore that their contexts have ended.
type stuckError struct {
	Funcs []string // paths of the functions, one for each handler
	IDs   []string // ids of their tasks in the same order, "" for tasks without an id
}

// Error implements error.
func (e *stuckError) Error() string {
	return fmt.Sprintf("delayed: %d handlers are stuck: %s; let them return when their contexts end", len(e.Funcs),
		strings.Join(e.Funcs, ", "))
}
