package redisstore

import (
	"errors"
	"fmt"
)

// Errors of the store. Package delayed publishes them, and documents them there.
var (
	// ErrUnknown says that the connection broke after the request was sent. Redis may have carried it out or not.
	ErrUnknown = errors.New("delayed: unknown whether Redis carried out the request")
	// ErrFull says that Redis refuses writes because its memory or its disk is full.
	ErrFull = errors.New("delayed: Redis refuses writes")
	// ErrNoID says that a task cannot be looked up because its message carries no id.
	ErrNoID = errors.New("delayed: task has no id")
	// ErrClosed says that the handle on Redis is closed, or that Run was called before.
	ErrClosed = errors.New("delayed: closed")
	// ErrDuplicate says that another task has the id or the lock.
	ErrDuplicate = errors.New("delayed: such a task is there already")
)

// ErrHandleClosed is the error of calls after the handle was closed.
var ErrHandleClosed = fmt.Errorf("%w: the handle on Redis is closed", ErrClosed)

// ErrReply says that a script's reply does not have the form that its header describes.
var ErrReply = errors.New("delayed: unexpected reply of a script; another version of the scripts may be in use")
