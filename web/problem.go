package web

import (
	"context"
	"errors"
	"net/http"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
)

// problem is an error with what HTTP calls it.
type problem struct {
	status int
	text   string
}

func (p *problem) Error() string { return p.text }

// bad says that the request is wrong.
func bad(text string) error { return &problem{http.StatusBadRequest, text} }

// missing says that there is nothing like what was asked for.
func missing(text string) error { return &problem{http.StatusNotFound, text} }

// forbidden says that the user may not do this.
func forbidden(text string) error { return &problem{http.StatusForbidden, text} }

// problemOf returns what HTTP calls an error, with a text for users, and whether the error is the server's.
func problemOf(err error) (p *problem, own bool) {
	switch {
	case errors.As(err, &p):
		return p, false
	case errors.Is(err, inspect.ErrNotFound), errors.Is(err, delayed.ErrNoEntry):
		return &problem{http.StatusNotFound, err.Error()}, false
	case errors.Is(err, inspect.ErrNotEmpty), errors.Is(err, delayed.ErrDuplicate):
		return &problem{http.StatusConflict, err.Error()}, false
	case errors.Is(err, inspect.ErrCursor), errors.Is(err, delayed.ErrArguments), errors.Is(err, delayed.ErrFunction):
		return &problem{http.StatusBadRequest, err.Error()}, false
	case errors.Is(err, context.Canceled):
		return &problem{499, "the request was given up"}, false
	}
	return &problem{http.StatusServiceUnavailable, err.Error()}, true
}
