// Package page has the pages of the dashboard for people.
package page

import (
	"bytes"
	"cmp"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/godelayed/delayed/web/internal/auth"
	"github.com/godelayed/delayed/web/internal/site"
)

// Pages are the pages of a dashboard for people.
type Pages struct {
	*shared

	open *site.Hub // live pages
	mux  *http.ServeMux
}

const (
	maxLivePages = 1000
	maxBrowsers  = 10_000 // that have them open
)

// New returns the pages of a site.
func New(s *site.Site) *Pages {
	h := &Pages{
		shared: &shared{Site: s}, open: site.NewHub(s.Ctx, maxLivePages, maxBrowsers, 1), mux: http.NewServeMux(),
	}
	h.mux.HandleFunc("GET /assets/{name}", asset)
	h.mux.HandleFunc("GET /login", h.login)
	h.mux.HandleFunc("POST /login", h.login)
	h.mux.HandleFunc("POST /logout", h.known(h.logout))
	h.mux.HandleFunc("GET /live", h.known(func(w http.ResponseWriter, r *http.Request, q *site.Request) {
		h.live(w, r, q.User)
	}))
	for path, route := range Routes {
		pattern := "/" + path
		if path == "" {
			pattern = "/{$}"
		}
		if route.Show != nil {
			h.mux.HandleFunc("GET "+pattern, h.page(route))
		}
		if route.Act != nil {
			h.mux.HandleFunc("POST "+pattern, h.act(route))
		}
	}
	h.mux.HandleFunc("/", h.known(func(w http.ResponseWriter, r *http.Request, q *site.Request) {
		h.fail(w, r, q.User, site.Missing("there is no such page"))
	}))
	return h
}

// ServeHTTP serves a page, or what one needs.
func (h *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// Wait waits for the end of live pages, which the end of the site's context begins.
func (h *Pages) Wait() { h.open.Wait() }

// known serves users that are known.
func (h *Pages) known(serve func(http.ResponseWriter, *http.Request, *site.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		user, bearer, err := h.Auth.User(r)
		if err != nil {
			h.refuse(w, r, err)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead && !bearer {
			if err := auth.CheckCSRF(r); err != nil {
				h.fail(w, r, user, site.Forbidden(err.Error()))
				return
			}
		}
		args := r.URL.Query()
		if r.Method == http.MethodPost {
			if err := r.ParseForm(); err != nil {
				h.fail(w, r, user, site.Bad("the form cannot be read"))
				return
			}
			args = r.PostForm
		}
		q, err := h.NewRequest(r.Context(), user, strings.TrimPrefix(r.URL.Path, "/"), args)
		if err != nil {
			h.fail(w, r, user, err)
			return
		}
		serve(w, r, q)
	}
}

// refuse answers a request of nobody who is known.
func (h *Pages) refuse(w http.ResponseWriter, r *http.Request, err error) {
	unknown := errors.Is(err, auth.ErrUnauthorized)
	switch {
	case !unknown:
		http.Error(w, "you may not use this dashboard", http.StatusForbidden)
	case len(h.Config.Tokens) > 0 && r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "html"):
		seeOther(w, "login")
	default:
		http.Error(w, "sign in first", http.StatusUnauthorized)
	}
}

// page serves a page.
func (h *Pages) page(route route) http.HandlerFunc {
	return h.known(func(w http.ResponseWriter, r *http.Request, q *site.Request) {
		s := h.shared
		if err := s.Allow(q.User, route.Role); err != nil {
			h.fail(w, r, q.User, err)
			return
		}
		p, err := route.Show(s, q)
		if err != nil {
			h.fail(w, r, q.User, err)
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
		if n, ok := s.note.get(q.Args.Get("notice"), q.User.Name); ok {
			l.Notice = &n
		}
		s.write(w, r, cmp.Or(p.Status, http.StatusOK), l)
	})
}

// layout returns the whole page around a main part.
func (s *shared) layout(q *site.Request, p *page) *layout {
	return &layout{
		Title: p.Title, Template: p.Template, Data: p.Data, Nav: s.nav(q.Path, q.User), User: q.User,
		Hidden: s.Hidden(q.User),
	}
}

// main serves the main part of a page, for browsers that events do not reach.
func (h *Pages) main(w http.ResponseWriter, r *http.Request, p *page) {
	body, err := MainPart(p.Template, p.Data)
	if err != nil {
		h.Failed(r, err)
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	secret := []byte(template.HTMLEscapeString(auth.CSRF(w, r)))
	_, _ = w.Write(bytes.ReplaceAll(body, []byte(csrfMark), secret)) // an error means that the browser has gone
}

// act does what a form asks for.
func (h *Pages) act(route route) http.HandlerFunc {
	return h.known(func(w http.ResponseWriter, r *http.Request, q *site.Request) {
		s := h.shared
		action, ok := route.Act[q.Args.Get("do")]
		if !ok {
			h.fail(w, r, q.User, site.Bad("the form does not say what to do"))
			return
		}
		if err := s.Allow(q.User, action.Role); err != nil {
			h.fail(w, r, q.User, err)
			return
		}
		out, err := action.do(s, q)
		if err != nil {
			p, own := site.HTTPErrorOf(err)
			if own {
				s.Failed(r, err)
			}
			if out.Form == nil {
				out = outcome{Text: p.Text, Bad: true}
			}
		}
		if out.Form != nil {
			s.write(w, r, http.StatusUnprocessableEntity, s.layout(q, out.Form))
			return
		}
		if out.To == "" {
			out.To = back(q.Args.Get("back"))
		}
		if out.Text != "" {
			key := s.note.add(notice{Text: out.Text, Bad: out.Bad, user: q.User.Name})
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
	if r, ok := Routes[u.Path]; !ok || u.Path == "" || r.Show == nil {
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
func (h *Pages) fail(w http.ResponseWriter, r *http.Request, user auth.User, err error) {
	p, own := site.HTTPErrorOf(err)
	if own {
		h.Failed(r, err)
	}
	h.write(w, r, p.Status, &layout{
		Title: http.StatusText(p.Status), Template: "problem", Nav: h.nav("problem", user), User: user,
		Data: map[string]string{"Title": http.StatusText(p.Status), "Text": p.Text},
	})
}

// route is an address: a page, something to do, or both.
type route struct {
	Role auth.Role                                   // that looking needs
	Show func(*shared, *site.Request) (*page, error) // nil: there is nothing to see
	Act  formActions                                 // by the value of field "do"
}

var (
	queueActions = commands(site.QueueCommands, "name", formActions{
		"weight": {auth.Operator, weighQueue}, "empty": {auth.Admin, emptyQueue}, "delete": {auth.Admin, deleteQueue},
	})
	workerActions = commands(site.WorkerCommands, "id", formActions{})
	entryActions  = commands(site.EntryCommands, "name", formActions{"run": {auth.Operator, runEntry}})
)

// Routes are the pages, by the last part of their address.
var Routes = map[string]route{
	"":          {Role: auth.Viewer, Show: showOverview},
	"job":       {Role: auth.Viewer, Show: showJob, Act: formActions{"cancel": {auth.Operator, cancelJob}}},
	"jobs":      {Role: auth.Viewer, Show: showJobs},
	"queue":     {Role: auth.Viewer, Show: showQueue, Act: queueActions},
	"periodic":  {Role: auth.Viewer, Show: showPeriodic, Act: entryActions},
	"entry":     {Role: auth.Viewer, Show: showEntry, Act: entryActions},
	"groups":    {Role: auth.Viewer, Show: showGroups, Act: formActions{"fire": {auth.Operator, fireGroup}}},
	"parked":    {Role: auth.Viewer, Show: showParked},
	"deaths":    {Role: auth.Viewer, Show: showDeaths},
	"audit":     {Role: auth.Viewer, Show: showAudit},
	"enqueue":   {Role: auth.Admin, Show: showEnqueue, Act: formActions{"enqueue": {auth.Admin, enqueueCall}}},
	"functions": {Role: auth.Viewer, Show: showFunctions},
	"function":  {Role: auth.Viewer, Show: showFunction},
	"workers":   {Role: auth.Viewer, Show: showWorkers, Act: workerActions},
	"worker":    {Role: auth.Viewer, Show: showWorker, Act: workerActions},
	"search":    {Role: auth.Viewer, Show: showSearch},
	"edit": {
		Role: auth.Admin, Show: showEdit,
		Act: formActions{"save": {auth.Admin, editTask}, "run": {auth.Admin, editTask}},
	},
	"task": {Role: auth.Viewer, Show: showTask, Act: verbActions(formActions{}, "", doTask)},
	"tasks": {
		Role: auth.Viewer, Show: showTasks,
		Act: verbActions(verbActions(formActions{}, "", doSome), "all-", doAll),
	},
}

// login shows the page for signing in, and signs in. It is served to anybody.
func (s *shared) login(w http.ResponseWriter, r *http.Request) {
	data := struct {
		Wrong, None bool
		CSRF        string
	}{None: len(s.Config.Tokens) == 0, CSRF: csrfMark}
	status := http.StatusOK
	if r.Method == http.MethodPost {
		if err := auth.CheckCSRF(r); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		if t := s.Auth.Token(r.PostFormValue("token")); t != nil {
			value := s.Auth.Sign(t, time.Now().Add(sessionLife))
			http.SetCookie(w, auth.Cookie(r, auth.SessionCookie, value, sessionLife))
			seeOther(w, "./")
			return
		}
		data.Wrong, status = true, http.StatusUnauthorized
	}
	s.write(w, r, status, &layout{Title: "Sign in", Template: "login", Data: data})
}

// logout ends the session.
func (s *shared) logout(w http.ResponseWriter, r *http.Request, _ *site.Request) {
	http.SetCookie(w, auth.Cookie(r, auth.SessionCookie, "", -time.Second))
	seeOther(w, "login")
}

// sessionLife is how long a sign-in lasts.
const sessionLife = 24 * time.Hour
