package auth

import (
	"errors"
	"fmt"
)

// Role is what a user may do. Each role may do what the roles before it may.
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

// ErrUnauthorized means that a request comes from nobody who is known. A Config.Authorize that returns it lets users
// sign in with one of Config.Tokens, if there are any.
var ErrUnauthorized = errors.New("web: not signed in")

// MinSecret is the length of the shortest secret.
const MinSecret = 16
