package api

import (
	"net/http"
	"reflect"

	"github.com/godelayed/delayed/web/internal/auth"
)

// Endpoint is a path and a method of the API.
type Endpoint struct {
	Method, Path string // below api/v1
	Role         auth.Role
	name         string // what programs that are generated call it
	text         string // what it does
	params       []param
	status       int // of success; 0: 200

	action
}

// action is what an endpoint does. Its types are those of the function that it was made of.
type action struct {
	body   reflect.Type // nil: none
	answer reflect.Type // nil: it is not a document of ours
	do     func(*shared, *apiCall) (any, error)
	// stream is in place of do. It returns an error if it has not written anything.
	stream func(*shared, http.ResponseWriter, *apiCall) error
}

// answers makes an action of a function without a body.
func answers[A any](do func(*shared, *apiCall) (A, error)) action {
	return action{
		answer: reflect.TypeFor[A](),
		do:     func(s *shared, c *apiCall) (any, error) { return do(s, c) },
	}
}

// takes makes an action of a function with a body.
func takes[B, A any](do func(*shared, *apiCall, *B) (A, error)) action {
	return action{
		body: reflect.TypeFor[B](), answer: reflect.TypeFor[A](),
		do: func(s *shared, c *apiCall) (any, error) {
			var body B
			if err := c.decode(&body); err != nil {
				return nil, err
			}
			return do(s, c, &body)
		},
	}
}

func (e *Endpoint) success() int {
	if e.status == 0 {
		return http.StatusOK
	}
	return e.status
}
