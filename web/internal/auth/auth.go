// Package auth finds out whose request it is, and whether a browser meant to send it.
package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Auth finds out whose request it is.
type Auth struct {
	authorize func(*http.Request) (User, error) // may be nil
	tokens    []Token
	key       []byte // signs sessions
}

// The names of cookies, and of what carries the secret of forms.
const (
	SessionCookie = "delayed_session"
	CSRFCookie    = "delayed_csrf"
	csrfField     = "csrf"
	CSRFHeader    = "X-Delayed-CSRF"
)

// New returns an Auth of users that a function knows, if it is not nil, and of those with tokens.
func New(authorize func(*http.Request) (User, error), tokens []Token) *Auth {
	sum := sha256.New()
	sum.Write([]byte("sessions of package web"))
	for _, t := range tokens { // all instances of a program sign alike
		sum.Write([]byte(strconv.Quote(t.Name) + strconv.Quote(t.Secret)))
	}
	return &Auth{authorize, tokens, sum.Sum(nil)}
}

// User returns the user of a request. bearer reports that it has a token with it, so it is not a browser's doing.
func (a *Auth) User(r *http.Request) (u User, bearer bool, err error) {
	if secret, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		if t := a.Token(secret); t != nil {
			return t.User, true, nil
		}
	}
	if c, err := r.Cookie(SessionCookie); err == nil {
		if t := a.session(c.Value, time.Now()); t != nil {
			return t.User, false, nil
		}
	}
	if a.authorize == nil {
		return User{}, false, ErrUnauthorized
	}
	u, err = a.authorize(r)
	if err == nil && (u.Role < Viewer || u.Role > Admin) {
		err = errors.New("web: the user has no role")
	}
	return u, false, err
}

// Token returns the token with a secret. How long it takes depends on no secret.
func (a *Auth) Token(secret string) (found *Token) {
	sum := sha256.Sum256([]byte(secret))
	for i := range a.tokens {
		other := sha256.Sum256([]byte(a.tokens[i].Secret))
		if subtle.ConstantTimeCompare(sum[:], other[:]) == 1 {
			found = &a.tokens[i]
		}
	}
	return found
}

// Sign returns the value of a session's cookie.
func (a *Auth) Sign(t *Token, ends time.Time) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(t.Name)) + "." + strconv.FormatInt(ends.Unix(), 10)
	return text + "." + a.mac(text)
}

func (a *Auth) mac(text string) string {
	m := hmac.New(sha256.New, a.key)
	m.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// session returns the token of a session's cookie.
func (a *Auth) session(value string, now time.Time) *Token {
	at := strings.LastIndexByte(value, '.')
	if at < 0 || !hmac.Equal([]byte(value[at+1:]), []byte(a.mac(value[:at]))) {
		return nil
	}
	encoded, ends, _ := strings.Cut(value[:at], ".")
	name, err := base64.RawURLEncoding.DecodeString(encoded)
	unix, err2 := strconv.ParseInt(ends, 10, 64)
	if err != nil || err2 != nil || now.Unix() > unix {
		return nil
	}
	for i := range a.tokens {
		if a.tokens[i].Name == string(name) {
			return &a.tokens[i]
		}
	}
	return nil
}

// Cookie makes a cookie for this dashboard alone: without a path, it is for the folder of the request.
func Cookie(r *http.Request, name, value string, life time.Duration) *http.Cookie {
	secure := r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
	return &http.Cookie{ //nolint:gosec // without TLS, a secure cookie would not come back
		Name: name, Value: value, HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode,
		MaxAge: int(life / time.Second),
	}
}

// CSRF returns the secret that forms of this browser carry, and sets its cookie if there is none.
func CSRF(w http.ResponseWriter, r *http.Request) string {
	if c, err := r.Cookie(CSRFCookie); err == nil && len(c.Value) >= MinSecret {
		return c.Value
	}
	value := rand.Text()
	http.SetCookie(w, Cookie(r, CSRFCookie, value, 30*24*time.Hour))
	return value
}

// CheckCSRF refuses requests that another site has made a browser send.
func CheckCSRF(r *http.Request) error {
	if err := crossOrigin.Check(r); err != nil {
		return errors.New("this request came from another site")
	}
	given := r.Header.Get(CSRFHeader)
	if given == "" {
		given = r.PostFormValue(csrfField)
	}
	c, err := r.Cookie(CSRFCookie)
	if err != nil || len(c.Value) < MinSecret || subtle.ConstantTimeCompare([]byte(given), []byte(c.Value)) != 1 {
		return errors.New("the form is too old, or another site has sent it: load the page again")
	}
	return nil
}

var crossOrigin = http.NewCrossOriginProtection()

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
