package site

import (
	"context"
	"errors"
	"net/http"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
)

// HTTPError is an error with what HTTP calls it.
type HTTPError struct {
	Status int
	Text   string
}

func (p *HTTPError) Error() string { return p.Text }

// Bad is the error of a request that is wrong.
func Bad(text string) error { return &HTTPError{http.StatusBadRequest, text} }

// Missing is the error if there is nothing like what was asked for.
func Missing(text string) error { return &HTTPError{http.StatusNotFound, text} }

// Forbidden is the error if the user may not do this.
func Forbidden(text string) error { return &HTTPError{http.StatusForbidden, text} }

// HTTPErrorOf returns what HTTP calls an error, with a text for users, and whether the error is the server's.
func HTTPErrorOf(err error) (p *HTTPError, own bool) {
	switch {
	case errors.As(err, &p):
		return p, false
	case errors.Is(err, inspect.ErrNotFound), errors.Is(err, delayed.ErrNoEntry):
		return &HTTPError{http.StatusNotFound, err.Error()}, false
	case errors.Is(err, inspect.ErrNotEmpty), errors.Is(err, delayed.ErrDuplicate):
		return &HTTPError{http.StatusConflict, err.Error()}, false
	case errors.Is(err, inspect.ErrCursor), errors.Is(err, delayed.ErrArguments), errors.Is(err, delayed.ErrFunction):
		return &HTTPError{http.StatusBadRequest, err.Error()}, false
	case errors.Is(err, context.Canceled):
		return &HTTPError{499, "the request was given up"}, false
	}
	return &HTTPError{http.StatusServiceUnavailable, err.Error()}, true
}

// Fail returns an HTTPError with a status of HTTP.
func Fail(status int, text string) *HTTPError { return &HTTPError{status, text} }
