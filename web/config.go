package web

import (
	"net/http"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/web/internal/auth"
	"github.com/godelayed/delayed/web/internal/site"
)

// Role is what a user may do. Each role may do what the roles before it may. Its method String returns its name, such
// as "viewer".
type Role = auth.Role

// The roles. The zero Role may do nothing.
const (
	Viewer   = auth.Viewer   // look at everything; not at arguments if Config.HideArguments says so
	Operator = auth.Operator // act on tasks, pause queues, workers and periodic entries, run entries
	Admin    = auth.Admin    // enqueue, edit arguments, delete queues and entries, stop workers
)

// ParseRole returns the role of a name that Role.String gives.
func ParseRole(name string) (Role, error) { return auth.ParseRole(name) }

// User is who uses the dashboard. Name is the actor in the audit log.
type User struct {
	Name string
	Role Role
}

// Token lets whoever knows its Secret in, on the page for signing in and, as a bearer token, in the API.
type Token struct {
	User

	Secret string // at least 16 bytes
}

// ErrUnauthorized means that a request comes from nobody who is known. A Config.Authorize that returns it lets users
// sign in with one of Config.Tokens, if there are any.
var ErrUnauthorized = auth.ErrUnauthorized

// Config is who may use a dashboard, and what it shows. Authorize or Tokens must be set.
type Config struct {
	// Authorize finds out whose request it is. It is called for each request but those for the page for signing in and
	// its assets, concurrently. If it returns an error, the request is refused, with 401 if that wraps ErrUnauthorized,
	// and with 403 otherwise; the text of the error is not shown. Live pages ask again every minute.
	Authorize func(*http.Request) (User, error)
	// Tokens let users sign in, and programs use the API.
	Tokens []Token

	// ReadOnly refuses all changes, whatever a user's role.
	ReadOnly bool
	// HideArguments hides arguments, headers, results and texts of errors from viewers, and refuses them the filters
	// on these.
	HideArguments bool
	// Redact changes what nobody may see of a task; see inspect.Config.
	Redact func(*inspect.Contents)

	// Title distinguishes this dashboard from others, such as "staging".
	Title string
	// Refresh is how often live pages are made anew. Defaults to two seconds.
	Refresh time.Duration
	// APIRate is how many requests a second a user may make of the API, on average. Defaults to 50; negative: any.
	APIRate float64
	// OnError is called with errors that a request met, other than mistakes in the request itself. It may be nil, and
	// may be called concurrently.
	OnError func(*http.Request, error)
}

// internal returns a Config as the other packages of the dashboard have it.
func (c *Config) internal() site.Config {
	own := site.Config{
		ReadOnly: c.ReadOnly, HideArguments: c.HideArguments, Redact: c.Redact, Title: c.Title, Refresh: c.Refresh,
		APIRate: c.APIRate, OnError: c.OnError,
	}
	if c.Authorize != nil {
		own.Authorize = func(r *http.Request) (auth.User, error) {
			u, err := c.Authorize(r)
			return auth.User(u), err
		}
	}
	for _, t := range c.Tokens {
		own.Tokens = append(own.Tokens, auth.Token{User: auth.User(t.User), Secret: t.Secret})
	}
	return own
}
