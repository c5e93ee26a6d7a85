// Package api answers programs.
package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/web/internal/auth"
	"github.com/godelayed/delayed/web/internal/site"
)

// API answers programs, under api/v1.
type API struct {
	*shared

	rate *limiter
	mux  *http.ServeMux
}

// Root is where the API is.
const Root = "/api/v1/"

// New returns the API of a site.
func New(s *site.Site) *API {
	a := &API{
		shared: &shared{s, &watchers{ctx: s.Ctx}}, rate: newLimiter(s.Config.APIRate), mux: http.NewServeMux(),
	}
	for path, methods := range methodsOf(Endpoints()) {
		a.mux.HandleFunc(Root+path, func(w http.ResponseWriter, r *http.Request) { a.dispatch(w, r, methods) })
	}
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		a.fail(w, r, site.Missing("there is nothing at this address: "+strings.TrimPrefix(Root, "/")+
			"openapi.json describes what there is"))
	})
	return a
}

// Wait waits for the end of what follows events, which the end of the site's context begins.
func (a *API) Wait() { a.watch.wg.Wait() }

// Followed returns how many sets of queues are followed, and for how many clients.
func (a *API) Followed() (sets, clients int) {
	a.watch.mu.Lock()
	defer a.watch.mu.Unlock()
	return len(a.watch.all), a.watch.size
}

// methodsOf groups endpoints by their paths.
func methodsOf(all []Endpoint) map[string]map[string]*Endpoint {
	paths := map[string]map[string]*Endpoint{}
	for i := range all {
		e := &all[i]
		if paths[e.Path] == nil {
			paths[e.Path] = map[string]*Endpoint{}
		}
		paths[e.Path][e.Method] = e
	}
	return paths
}

// ServeHTTP answers a request of a user that is known and does not ask too often.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, bearer, err := a.Auth.User(r)
	switch {
	case errors.Is(err, auth.ErrUnauthorized):
		w.Header().Set("WWW-Authenticate", "Bearer")
		a.fail(w, r, site.Fail(
			http.StatusUnauthorized,
			"expected the token of a user in the header Authorization, as in \"Authorization: Bearer TOKEN\""))
		return
	case err != nil:
		a.fail(w, r, site.Forbidden("you may not use this dashboard"))
		return
	}
	if wait := a.rate.take(user.Name, time.Now()); wait > 0 {
		seconds := int(wait/time.Second) + 1
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
		a.fail(w, r, site.Fail(
			http.StatusTooManyRequests,
			fmt.Sprintf("expected at most %g requests a second, found more: try again in %d s", a.Config.APIRate,
				seconds)))
		return
	}
	a.mux.ServeHTTP(w, r.WithContext(withCaller(r.Context(), caller{user, bearer})))
}

// dispatch calls the endpoint of a method.
func (a *API) dispatch(w http.ResponseWriter, r *http.Request, methods map[string]*Endpoint) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	e := methods[method]
	if e == nil {
		allowed := slices.Sorted(maps.Keys(methods))
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		a.fail(w, r, site.Fail(
			http.StatusMethodNotAllowed,
			fmt.Sprintf("expected %s, found %s", strings.Join(allowed, " or "), call.Clip(r.Method, 20))))
		return
	}
	c, err := a.admit(r, e)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	if e.stream != nil {
		if err := e.stream(a.shared, w, c); err != nil {
			a.fail(w, r, err)
		}
		return
	}
	answer, err := e.do(a.shared, c)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	if c.location != "" {
		w.Header().Set("Location", c.location)
	}
	a.write(w, r, e.success(), "application/json", answer)
}

// admit checks what all endpoints check.
func (a *API) admit(r *http.Request, e *Endpoint) (*apiCall, error) {
	who := callerOf(r.Context())
	if err := a.allow(who.user, e.Role); err != nil {
		return nil, err
	}
	changes := e.Method != http.MethodGet
	if changes && !who.bearer {
		if r.Header.Get(auth.CSRFHeader) == "" {
			return nil, site.Forbidden("expected a token as in \"Authorization: Bearer TOKEN\", or of a browser the " +
				"header " +
				auth.CSRFHeader + " with the value of its cookie " + auth.CSRFCookie)
		}
		if err := auth.CheckCSRF(r); err != nil {
			return nil, site.Forbidden(err.Error())
		}
	}
	args, err := queryOf(r, e.params)
	if err != nil {
		return nil, err
	}
	q, err := a.NewRequest(r.Context(), who.user, e.Path, args)
	if err != nil {
		return nil, err
	}
	c := &apiCall{Request: q, http: r}
	if e.body == nil && changes {
		err = c.noBody()
	}
	return c, err
}

// allow returns an error if a user may not do what needs a role.
func (a *API) allow(user auth.User, role auth.Role) error {
	switch {
	case a.May(user, role):
		return nil
	case a.Config.ReadOnly && user.Role >= role:
		return site.Forbidden("this dashboard changes nothing: it is read-only")
	}
	return site.Forbidden(fmt.Sprintf("your role, %v, does not allow this: expected %v", user.Role, role))
}

// write writes a document.
func (a *API) write(w http.ResponseWriter, r *http.Request, status int, kind string, document any) {
	text, ok := document.(json.RawMessage)
	if !ok {
		var err error
		if text, err = call.JSON(document); err != nil {
			a.Failed(r, err)
			status, kind = http.StatusInternalServerError, "application/problem+json"
			text = []byte(`{"title":"Internal Server Error","status":500,"detail":"the answer cannot be written"}`)
		}
	}
	text = append(bytes.TrimSpace(text), '\n')
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(text) // the client may have gone
	}
}

// fail answers with an error.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	p, own := site.HTTPErrorOf(err)
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		p, own = site.Fail(
			http.StatusRequestEntityTooLarge, fmt.Sprintf("expected a body of at most %d bytes", large.Limit)),

			false
	}
	if own {
		a.Failed(r, err)
	}
	title := http.StatusText(p.Status)
	if title == "" {
		title = "Client Closed Request"
	}
	a.write(w, r, p.Status, "application/problem+json", problemAnswer{title, p.Status, p.Text})
}
