package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// gate finds out whose request it is.
type gate struct {
	cfg Config
	key []byte // signs sessions
}

const (
	sessionCookie = "delayed_session"
	csrfCookie    = "delayed_csrf"
	csrfField     = "csrf"
	csrfHeader    = "X-Delayed-CSRF"
)

func newGate(cfg Config) *gate {
	sum := sha256.New()
	sum.Write([]byte("sessions of package web"))
	for _, t := range cfg.Tokens { // all instances of a program sign alike
		sum.Write([]byte(strconv.Quote(t.Name) + strconv.Quote(t.Secret)))
	}
	return &gate{cfg, sum.Sum(nil)}
}

// user returns the user of a request. bearer says that it has a token with it, so it is not a browser's doing.
func (g *gate) user(r *http.Request) (u User, bearer bool, err error) {
	if secret, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		if t := g.token(secret); t != nil {
			return t.User, true, nil
		}
	}
	if c, err := r.Cookie(sessionCookie); err == nil {
		if t := g.session(c.Value, time.Now()); t != nil {
			return t.User, false, nil
		}
	}
	if g.cfg.Authorize == nil {
		return User{}, false, ErrUnauthorized
	}
	u, err = g.cfg.Authorize(r)
	if err == nil && (u.Role < Viewer || u.Role > Admin) {
		err = errors.New("web: the user has no role")
	}
	return u, false, err
}

// token returns the token with a secret. Its time tells nothing of the secrets.
func (g *gate) token(secret string) (found *Token) {
	sum := sha256.Sum256([]byte(secret))
	for i := range g.cfg.Tokens {
		other := sha256.Sum256([]byte(g.cfg.Tokens[i].Secret))
		if subtle.ConstantTimeCompare(sum[:], other[:]) == 1 {
			found = &g.cfg.Tokens[i]
		}
	}
	return found
}

// sign returns the value of a session's cookie.
func (g *gate) sign(t *Token, ends time.Time) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(t.Name)) + "." + strconv.FormatInt(ends.Unix(), 10)
	return text + "." + g.mac(text)
}

func (g *gate) mac(text string) string {
	m := hmac.New(sha256.New, g.key)
	m.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// session returns the token of a session's cookie.
func (g *gate) session(value string, now time.Time) *Token {
	at := strings.LastIndexByte(value, '.')
	if at < 0 || !hmac.Equal([]byte(value[at+1:]), []byte(g.mac(value[:at]))) {
		return nil
	}
	encoded, ends, _ := strings.Cut(value[:at], ".")
	name, err := base64.RawURLEncoding.DecodeString(encoded)
	unix, err2 := strconv.ParseInt(ends, 10, 64)
	if err != nil || err2 != nil || now.Unix() > unix {
		return nil
	}
	for i := range g.cfg.Tokens {
		if g.cfg.Tokens[i].Name == string(name) {
			return &g.cfg.Tokens[i]
		}
	}
	return nil
}

// cookie makes a cookie for this dashboard alone: without a path, it is for the folder of the request.
func cookie(r *http.Request, name, value string, life time.Duration) *http.Cookie {
	secure := r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
	return &http.Cookie{ //nolint:gosec // without TLS, a secure cookie would not come back
		Name: name, Value: value, HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode,
		MaxAge: int(life / time.Second),
	}
}

// csrf returns the secret that forms of this browser carry, and sets its cookie if there is none.
func csrf(w http.ResponseWriter, r *http.Request) string {
	if c, err := r.Cookie(csrfCookie); err == nil && len(c.Value) >= minSecret {
		return c.Value
	}
	value := rand.Text()
	http.SetCookie(w, cookie(r, csrfCookie, value, 30*day))
	return value
}

// checkCSRF refuses requests that another site has made a browser send.
func checkCSRF(r *http.Request) error {
	if err := crossOrigin.Check(r); err != nil {
		return forbidden("this request came from another site")
	}
	given := r.Header.Get(csrfHeader)
	if given == "" {
		given = r.PostFormValue(csrfField)
	}
	c, err := r.Cookie(csrfCookie)
	if err != nil || len(c.Value) < minSecret || subtle.ConstantTimeCompare([]byte(given), []byte(c.Value)) != 1 {
		return forbidden("the form is too old, or another site has sent it: load the page again")
	}
	return nil
}

var crossOrigin = http.NewCrossOriginProtection()
