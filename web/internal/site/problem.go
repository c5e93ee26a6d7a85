package site

import (
	"context"
	"errors"
	"net/http"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
)

// Problem is an error with what HTTP calls it.
type Problem struct {
	Status int
	Text   string
}

func (p *Problem) Error() string { return p.Text }

// Bad says that the request is wrong.
func Bad(text string) error { return &Problem{http.StatusBadRequest, text} }

// Missing says that there is nothing like what was asked for.
func Missing(text string) error { return &Problem{http.StatusNotFound, text} }

// Forbidden says that the user may not do this.
func Forbidden(text string) error { return &Problem{http.StatusForbidden, text} }

// ProblemOf returns what HTTP calls an error, with a text for users, and whether the error is the server's.
func ProblemOf(err error) (p *Problem, own bool) {
	switch {
	case errors.As(err, &p):
		return p, false
	case errors.Is(err, inspect.ErrNotFound), errors.Is(err, delayed.ErrNoEntry):
		return &Problem{http.StatusNotFound, err.Error()}, false
	case errors.Is(err, inspect.ErrNotEmpty), errors.Is(err, delayed.ErrDuplicate):
		return &Problem{http.StatusConflict, err.Error()}, false
	case errors.Is(err, inspect.ErrCursor), errors.Is(err, delayed.ErrArguments), errors.Is(err, delayed.ErrFunction):
		return &Problem{http.StatusBadRequest, err.Error()}, false
	case errors.Is(err, context.Canceled):
		return &Problem{499, "the request was given up"}, false
	}
	return &Problem{http.StatusServiceUnavailable, err.Error()}, true
}

// Fail returns a Problem with a status of HTTP.
func Fail(status int, text string) *Problem { return &Problem{status, text} }
