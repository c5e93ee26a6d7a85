package api

import (
	"net/http"
	"reflect"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/web/internal/auth"
)

// Endpoint is a path and a method of the API.
type Endpoint struct {
	Method, Path string // below api/v1
	Role         auth.Role
	name         string // what programs that are generated call it
	text         string // what it does
	params       []param

	action
}

// action is what an endpoint does. Its types are those of the function that it was made of.
type action struct {
	body   reflect.Type // nil: none
	answer reflect.Type // nil: it is not a document of ours
	do     func(*apiCall) (any, error)
	// stream is in place of do. It returns an error if it has not written anything.
	stream func(http.ResponseWriter, *apiCall) error
	status int // of success; 0: 200
}

// answers makes an action of a function without a body.
func answers[A any](do func(*apiCall) (A, error)) action {
	return action{answer: reflect.TypeFor[A](), do: func(c *apiCall) (any, error) { return do(c) }}
}

// takes makes an action of a function with a body.
func takes[B, A any](do func(*apiCall, *B) (A, error)) action {
	return action{
		body: reflect.TypeFor[B](), answer: reflect.TypeFor[A](),
		do: func(c *apiCall) (any, error) {
			var body B
			if err := c.decode(&body); err != nil {
				return nil, err
			}
			return do(c, &body)
		},
	}
}

// reads makes an action of a function that reads something of the queues that the address names, or of all. names is
// empty for all.
func reads[A any](do func(c *apiCall, queues []inspect.Queue, names []string) (A, error)) action {
	return answers(func(c *apiCall) (v A, err error) {
		queues, names, err := c.described()
		if err != nil {
			return v, err
		}
		return do(c, queues, names)
	})
}

// with returns the action with another status of success.
func (a action) with(status int) action {
	a.status = status
	return a
}

func (a action) success() int {
	if a.status == 0 {
		return http.StatusOK
	}
	return a.status
}
