package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/godelayed/delayed"
)

// Handler is a dashboard. It is safe for concurrent use.
type Handler struct {
	site  *site
	feeds feeds
	mux   *http.ServeMux
	stop  context.CancelFunc
}

// New returns a dashboard of the queues of a Redis handle, those with its prefix. It does not connect. Mount it at a
// path that ends with a slash, and strip that path without its last slash. Close ends it.
func New(rdb *delayed.Store, cfg Config) (*Handler, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &site{
		cfg: cfg, rdb: rdb, ctx: ctx, auth: newGate(cfg), note: &notices{}, jobs: &jobs{}, watch: &watchers{ctx: ctx},
		fast: &cache{life: min(time.Second, cfg.Refresh/2)}, slow: &cache{life: min(10*time.Second, 5*cfg.Refresh)},
		askAgain: askAgain,
	}
	if _, err := s.inspector(User{Name: "web"}); err != nil { // rdb is nil or zero
		stop()
		return nil, err
	}
	h := &Handler{site: s, mux: http.NewServeMux(), stop: stop}
	programs := newAPI(s)
	h.mux.Handle(apiRoot, programs)
	h.mux.Handle(strings.TrimSuffix(apiRoot, "/"), programs)
	h.mux.HandleFunc("GET /assets/{name}", asset)
	h.mux.HandleFunc("GET /login", s.login)
	h.mux.HandleFunc("POST /login", s.login)
	h.mux.HandleFunc("POST /logout", h.known(s.logout))
	h.mux.HandleFunc("GET /live", h.known(func(w http.ResponseWriter, r *http.Request, q *request) {
		h.live(w, r, q.user)
	}))
	for path, route := range routes {
		pattern := "/" + path
		if path == "" {
			pattern = "/{$}"
		}
		if route.show != nil {
			h.mux.HandleFunc("GET "+pattern, h.page(route))
		}
		if route.act != nil {
			h.mux.HandleFunc("POST "+pattern, h.deed(route))
		}
	}
	h.mux.HandleFunc("/", h.known(func(w http.ResponseWriter, r *http.Request, q *request) {
		h.fail(w, r, q.user, missing("there is no such page"))
	}))
	return h, nil
}

// Close ends live pages and jobs, and waits for them. Requests are refused afterwards.
func (h *Handler) Close() error {
	h.stop()
	h.feeds.wg.Wait()
	h.site.watch.wg.Wait()
	h.site.jobs.wait()
	return nil
}

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP serves the dashboard.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	if h.site.ctx.Err() != nil {
		http.Error(w, "the dashboard is closed", http.StatusServiceUnavailable)
		return
	}
	if r.URL.Path == "" { // relative links need the slash behind the path where this is mounted
		if original, err := url.ParseRequestURI(r.RequestURI); err == nil {
			//nolint:gosec // it is the path that the program has mounted this at
			http.Redirect(w, r, original.EscapedPath()+"/", http.StatusTemporaryRedirect)
			return
		}
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	h.mux.ServeHTTP(w, r)
}

// maxBody is the size of the largest form: edited arguments of a task of the largest size, escaped.
const maxBody = 8 << 20

// known serves users that are known.
func (h *Handler) known(serve func(http.ResponseWriter, *http.Request, *request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		user, bearer, err := h.site.auth.user(r)
		if err != nil {
			h.refuse(w, r, err)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead && !bearer {
			if err := checkCSRF(r); err != nil {
				h.fail(w, r, user, err)
				return
			}
		}
		args := r.URL.Query()
		if r.Method == http.MethodPost {
			if err := r.ParseForm(); err != nil {
				h.fail(w, r, user, bad("the form cannot be read"))
				return
			}
			args = r.PostForm
		}
		q, err := h.site.newRequest(r.Context(), user, strings.TrimPrefix(r.URL.Path, "/"), args)
		if err != nil {
			h.fail(w, r, user, err)
			return
		}
		serve(w, r, q)
	}
}

// refuse answers a request of nobody who is known.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	unknown := errors.Is(err, ErrUnauthorized)
	switch {
	case !unknown:
		http.Error(w, "you may not use this dashboard", http.StatusForbidden)
	case len(h.site.cfg.Tokens) > 0 && r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "html"):
		seeOther(w, "login")
	default:
		http.Error(w, "sign in first", http.StatusUnauthorized)
	}
}

// page serves a page.
func (h *Handler) page(route route) http.HandlerFunc {
	return h.known(func(w http.ResponseWriter, r *http.Request, q *request) {
		s := h.site
		if !s.may(q.user, route.role) {
			h.fail(w, r, q.user, forbidden("your role, "+q.user.Role.String()+", does not allow this"))
			return
		}
		p, err := route.show(s, q)
		if err != nil {
			h.fail(w, r, q.user, err)
			return
		}
		if p.To != "" {
			seeOther(w, p.To)
			return
		}
		if r.Header.Get("X-Delayed-Main") != "" {
			h.main(w, r, p)
			return
		}
		l := s.layout(q, p)
		if !p.Still {
			l.Live = string(link("live", "u", address(q)))
		}
		if n, ok := s.note.get(q.args.Get("notice"), q.user.Name); ok {
			l.Notice = &n
		}
		s.write(w, r, cmp.Or(p.Status, http.StatusOK), l)
	})
}

// layout returns the whole page around a main part.
func (s *site) layout(q *request, p *page) *layout {
	return &layout{
		Title: p.Title, Template: p.Template, Data: p.Data, Nav: s.nav(q.path, q.user), User: q.user,
		Hidden: s.hidden(q.user),
	}
}

// main serves the main part of a page, for browsers that events do not reach.
func (h *Handler) main(w http.ResponseWriter, r *http.Request, p *page) {
	body, err := mainPart(p.Template, p.Data)
	if err != nil {
		h.site.failed(r, err)
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	secret := []byte(template.HTMLEscapeString(csrf(w, r)))
	_, _ = w.Write(bytes.ReplaceAll(body, []byte(csrfMark), secret)) // an error means that the browser has gone
}

// deed does what a form asks for.
func (h *Handler) deed(route route) http.HandlerFunc {
	return h.known(func(w http.ResponseWriter, r *http.Request, q *request) {
		s := h.site
		deed, ok := route.act[q.args.Get("do")]
		switch {
		case !ok:
			h.fail(w, r, q.user, bad("the form does not say what to do"))
			return
		case s.cfg.ReadOnly:
			h.fail(w, r, q.user, forbidden("this dashboard changes nothing: it is read-only"))
			return
		case !s.may(q.user, deed.role):
			h.fail(w, r, q.user, forbidden("your role, "+q.user.Role.String()+", does not allow this"))
			return
		}
		out, err := deed.do(s, q)
		if err != nil {
			p, own := problemOf(err)
			if own {
				s.failed(r, err)
			}
			if out.Form == nil {
				out = outcome{Text: p.text, Bad: true}
			}
		}
		if out.Form != nil {
			s.write(w, r, http.StatusUnprocessableEntity, s.layout(q, out.Form))
			return
		}
		if out.To == "" {
			out.To = back(q.args.Get("back"))
		}
		if out.Text != "" {
			key := s.note.add(notice{Text: out.Text, Bad: out.Bad, user: q.user.Name})
			to, _ := url.Parse(out.To) // made by this package, or checked
			args := to.Query()
			args.Set("notice", key)
			out.To = to.Path + "?" + args.Encode()
		}
		seeOther(w, out.To) // made by this package, or checked by back
	})
}

// back returns the address of the page that a form was on, if it is one of this site, else that of the first page.
func back(given string) string {
	u, err := url.Parse(given)
	if err != nil || u.IsAbs() || u.Host != "" || u.Opaque != "" {
		return "./"
	}
	if r, ok := routes[u.Path]; !ok || u.Path == "" || r.show == nil {
		return "./"
	}
	args := u.Query()
	args.Del("notice")
	if len(args) == 0 {
		return u.Path
	}
	return u.Path + "?" + args.Encode()
}

// seeOther sends the browser to another page of this site. http.Redirect would make the address absolute, without the
// path that the dashboard is mounted at.
func seeOther(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

// fail shows an error.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, user User, err error) {
	p, own := problemOf(err)
	if own {
		h.site.failed(r, err)
	}
	h.site.write(w, r, p.status, &layout{
		Title: http.StatusText(p.status), Template: "problem", Nav: h.site.nav("problem", user), User: user,
		Data: map[string]string{"Title": http.StatusText(p.status), "Text": p.text},
	})
}
