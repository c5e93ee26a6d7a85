package web

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
)

// api answers programs, under api/v1.
type api struct {
	site *site
	rate *limiter
	mux  *http.ServeMux
}

// apiRoot is where the API is.
const apiRoot = "/api/v1/"

func newAPI(s *site) *api {
	a := &api{site: s, rate: newLimiter(s.cfg.APIRate), mux: http.NewServeMux()}
	for path, methods := range methodsOf(endpoints()) {
		a.mux.HandleFunc(apiRoot+path, func(w http.ResponseWriter, r *http.Request) { a.dispatch(w, r, methods) })
	}
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		a.fail(w, r, missing("there is nothing at this address: "+strings.TrimPrefix(apiRoot, "/")+
			"openapi.json describes what there is"))
	})
	return a
}

// methodsOf groups endpoints by their paths.
func methodsOf(all []endpoint) map[string]map[string]*endpoint {
	paths := map[string]map[string]*endpoint{}
	for i := range all {
		e := &all[i]
		if paths[e.path] == nil {
			paths[e.path] = map[string]*endpoint{}
		}
		paths[e.path][e.method] = e
	}
	return paths
}

// ServeHTTP answers a request of a user that is known and does not ask too often.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, bearer, err := a.site.auth.user(r)
	switch {
	case errors.Is(err, ErrUnauthorized):
		w.Header().Set("WWW-Authenticate", "Bearer")
		a.fail(w, r, &problem{
			http.StatusUnauthorized,
			"expected the token of a user in the header Authorization, as in \"Authorization: Bearer TOKEN\"",
		})
		return
	case err != nil:
		a.fail(w, r, forbidden("you may not use this dashboard"))
		return
	}
	if wait := a.rate.take(user.Name, time.Now()); wait > 0 {
		seconds := int(wait/time.Second) + 1
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
		a.fail(w, r, &problem{
			http.StatusTooManyRequests,
			fmt.Sprintf("expected at most %g requests a second, found more: try again in %d s", a.site.cfg.APIRate,
				seconds),
		})
		return
	}
	a.mux.ServeHTTP(w, r.WithContext(withCaller(r.Context(), caller{user, bearer})))
}

// dispatch calls the endpoint of a method.
func (a *api) dispatch(w http.ResponseWriter, r *http.Request, methods map[string]*endpoint) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	e := methods[method]
	if e == nil {
		allowed := slices.Sorted(maps.Keys(methods))
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		a.fail(w, r, &problem{
			http.StatusMethodNotAllowed,
			fmt.Sprintf("expected %s, found %s", strings.Join(allowed, " or "), call.Clip(r.Method, 20)),
		})
		return
	}
	c, err := a.admit(r, e)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	if e.stream != nil {
		if err := e.stream(a.site, w, c); err != nil {
			a.fail(w, r, err)
		}
		return
	}
	answer, err := e.do(a.site, c)
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
func (a *api) admit(r *http.Request, e *endpoint) (*apiCall, error) {
	who := callerOf(r.Context())
	if err := a.allow(who.user, e.role); err != nil {
		return nil, err
	}
	changes := e.method != http.MethodGet
	if changes && !who.bearer {
		if r.Header.Get(csrfHeader) == "" {
			return nil, forbidden("expected a token as in \"Authorization: Bearer TOKEN\", or of a browser the " +
				"header " +
				csrfHeader + " with the value of its cookie " + csrfCookie)
		}
		if err := checkCSRF(r); err != nil {
			return nil, err
		}
	}
	args, err := queryOf(r, e.params)
	if err != nil {
		return nil, err
	}
	q, err := a.site.newRequest(r.Context(), who.user, e.path, args)
	if err != nil {
		return nil, err
	}
	c := &apiCall{request: q, http: r}
	if e.body == nil && changes {
		err = c.noBody()
	}
	return c, err
}

// allow returns an error if a user may not do what needs a role.
func (a *api) allow(user User, role Role) error {
	switch {
	case a.site.may(user, role):
		return nil
	case a.site.cfg.ReadOnly && user.Role >= role:
		return forbidden("this dashboard changes nothing: it is read-only")
	}
	return forbidden(fmt.Sprintf("your role, %v, does not allow this: expected %v", user.Role, role))
}

// write writes a document.
func (a *api) write(w http.ResponseWriter, r *http.Request, status int, kind string, document any) {
	text, ok := document.(json.RawMessage)
	if !ok {
		var err error
		if text, err = call.JSON(document); err != nil {
			a.site.failed(r, err)
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
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	p, own := problemOf(err)
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		p, own = &problem{
			http.StatusRequestEntityTooLarge, fmt.Sprintf("expected a body of at most %d bytes", large.Limit),
		}, false
	}
	if own {
		a.site.failed(r, err)
	}
	title := http.StatusText(p.status)
	if title == "" {
		title = "Client Closed Request"
	}
	a.write(w, r, p.status, "application/problem+json", problemAnswer{title, p.status, p.text})
}
