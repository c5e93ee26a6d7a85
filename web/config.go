package web

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/godelayed/delayed/inspect"
)

// Role says what a user may do. Each role may do what the roles before it may.
type Role uint8

// The roles. The zero Role may do nothing.
const (
	Viewer   Role = iota + 1 // look at everything; not at arguments if Config.HideArguments says so
	Operator                 // act on tasks, pause queues, workers and periodic entries, run entries
	Admin                    // enqueue, edit arguments, delete queues and entries, stop workers
)

var roleNames = [...]string{"none", "viewer", "operator", "admin"}

// String returns the role's name, such as "viewer".
func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return fmt.Sprintf("web.Role(%d)", uint8(r))
}

// ParseRole returns the role of a name that Role.String gives.
func ParseRole(name string) (Role, error) {
	for r := Viewer; r <= Admin; r++ {
		if roleNames[r] == name {
			return r, nil
		}
	}
	return 0, fmt.Errorf("web: expected viewer, operator or admin, found %q", name)
}

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

// ErrUnauthorized says that a request comes from nobody who is known. A Config.Authorize that returns it lets users
// sign in with one of Config.Tokens, if there are any.
var ErrUnauthorized = errors.New("web: not signed in")

// Config says who may use a dashboard, and what it shows. Authorize or Tokens must be set.
type Config struct {
	// Authorize says whose request it is. It is called for each request but those for the page for signing in and its
	// assets, concurrently. If it returns an error, the request is refused, with 401 if that wraps ErrUnauthorized, and
	// with 403 otherwise; the text of the error is not shown. Live pages ask again every minute.
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

	// Title tells this dashboard from others, such as "staging".
	Title string
	// Refresh is how often live pages are made anew. Defaults to two seconds.
	Refresh time.Duration
	// APIRate is how many requests a second a user may make of the API, on average. Defaults to 50; negative: any.
	APIRate float64
	// OnError is told of errors that a request met, other than mistakes in the request itself. It may be nil, and may
	// be called concurrently.
	OnError func(*http.Request, error)
}

// minSecret is the length of the shortest secret.
const minSecret = 16

func (c *Config) check() error {
	if c.Authorize == nil && len(c.Tokens) == 0 {
		return errors.New("web: anybody could do anything: set Config.Authorize or Config.Tokens")
	}
	if c.Refresh == 0 {
		c.Refresh = 2 * time.Second
	}
	if c.Refresh < 100*time.Millisecond {
		return fmt.Errorf("web: Config.Refresh: expected at least 100 ms, found %v", c.Refresh)
	}
	if c.APIRate == 0 {
		c.APIRate = 50
	}
	names := map[string]bool{}
	for i, t := range c.Tokens {
		switch {
		case t.Name == "" || t.Role < Viewer || t.Role > Admin:
			return fmt.Errorf("web: Config.Tokens[%d]: expected a name and a role, found %q and %v", i, t.Name, t.Role)
		case len(t.Secret) < minSecret:
			return fmt.Errorf("web: Config.Tokens[%d]: expected a secret of at least %d bytes, found %d", i, minSecret,
				len(t.Secret))
		case names[t.Name]:
			return fmt.Errorf("web: Config.Tokens[%d]: expected names that differ, found %q twice", i, t.Name)
		}
		names[t.Name] = true
	}
	return nil
}
