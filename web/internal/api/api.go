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
	*site.Site

	events *site.Hub
	rate   *limiter
	mux    *http.ServeMux
}

// Root is where the API is.
const Root = "/api/v1/"

// New returns the API of a site.
func New(s *site.Site) *API {
	a := &API{
		Site: s, events: site.NewHub(s.Ctx, maxSets, maxClients, maxBehind), rate: newLimiter(s.Config.APIRate),
		mux: http.NewServeMux(),
	}
	for path, methods := range methodsOf(Endpoints()) {
		a.mux.HandleFunc(Root+path, a.known(func(w http.ResponseWriter, c *apiCall) { a.dispatch(w, c, methods) }))
	}
	a.mux.HandleFunc("/", a.known(func(w http.ResponseWriter, c *apiCall) {
		a.fail(w, c.http, site.Missing("there is nothing at this address: "+strings.TrimPrefix(Root, "/")+
			"openapi.json describes what there is"))
	}))
	return a
}

// Wait waits for the end of what follows events, which the end of the site's context begins.
func (a *API) Wait() { a.events.Wait() }

// Followed returns how many sets of queues are followed, and for how many clients.
func (a *API) Followed() (sets, clients int) { return a.events.Len() }

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

// ServeHTTP answers a request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

// known serves users that are known and do not ask too often.
func (a *API) known(serve func(http.ResponseWriter, *apiCall)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		user, bearer, err := a.Auth.User(r)
		switch {
		case errors.Is(err, auth.ErrUnauthorized):
			w.Header().Set("WWW-Authenticate", "Bearer")
			a.fail(w, r, site.Fail(http.StatusUnauthorized,
				`expected the token of a user in the header Authorization, as in "Authorization: Bearer TOKEN"`))
			return
		case err != nil:
			a.fail(w, r, site.Forbidden("you may not use this dashboard"))
			return
		}
		if wait := a.rate.take(user.Name, time.Now()); wait > 0 {
			seconds := int(wait/time.Second) + 1
			w.Header().Set("Retry-After", strconv.Itoa(seconds))
			a.fail(w, r, site.Fail(http.StatusTooManyRequests, fmt.Sprintf(
				"expected at most %g requests a second, found more: try again in %d s", a.Config.APIRate, seconds)))
			return
		}
		q, err := a.NewRequest(r.Context(), user, "", nil)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		serve(w, &apiCall{Request: q, site: a.Site, events: a.events, http: r, bearer: bearer})
	}
}

// dispatch calls the endpoint of a method.
func (a *API) dispatch(w http.ResponseWriter, c *apiCall, methods map[string]*Endpoint) {
	method := c.http.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	e := methods[method]
	if e == nil {
		allowed := slices.Sorted(maps.Keys(methods))
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		a.fail(w, c.http, site.Fail(http.StatusMethodNotAllowed,
			fmt.Sprintf("expected %s, found %s", strings.Join(allowed, " or "), call.Clip(c.http.Method, 20))))
		return
	}
	if err := a.answer(w, c, e); err != nil {
		a.fail(w, c.http, err)
	}
}

// answer lets an endpoint answer. With an error, it has written nothing.
func (a *API) answer(w http.ResponseWriter, c *apiCall, e *Endpoint) error {
	if err := c.admit(e); err != nil {
		return err
	}
	if e.stream != nil {
		return e.stream(w, c)
	}
	answer, err := e.do(c)
	if err != nil {
		return err
	}
	if c.location != "" {
		w.Header().Set("Location", c.location)
	}
	a.write(w, c.http, e.success(), "application/json", answer)
	return nil
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
		p, own = site.Fail(http.StatusRequestEntityTooLarge,
			fmt.Sprintf("expected a body of at most %d bytes", large.Limit)), false
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
