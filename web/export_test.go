package web

import (
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web/internal/api"
	"github.com/godelayed/delayed/web/internal/auth"
	"github.com/godelayed/delayed/web/internal/page"
	"github.com/godelayed/delayed/web/internal/site"
)

// StartJob begins a job and returns its id.
func (h *Handler) StartJob(u User, queue string, s state.Task, f inspect.Filter, a inspect.Action) (string, error) {
	q, err := h.site.NewRequest(h.site.Ctx, auth.User(u), "", nil)
	if err != nil {
		return "", err
	}
	j, err := h.site.Jobs.Start(h.site.Ctx, q.Ins, site.Order{
		Queue: queue, State: s, Filter: f, What: "Do", Action: a, By: u.Name,
	})
	if err != nil {
		return "", err
	}
	return j.ID, nil
}

// AskAgain makes live pages and streams of events ask so often whether their user still has access.
func (h *Handler) AskAgain(every time.Duration) { h.site.AskAgain = every }

// Values of jobs.
const (
	MaxRunning = site.MaxRunning
	MaxJobs    = site.MaxJobs
)

// Routes returns the actions of all pages with their roles, and whether there is a page to look at, as the action "".
func Routes() map[string]map[string]Role {
	all := map[string]map[string]Role{}
	for path, r := range page.Routes {
		actions := map[string]Role{}
		if r.Show != nil {
			actions[""] = r.Role
		}
		for name, d := range r.Act {
			actions[name] = d.Role
		}
		all[path] = actions
	}
	return all
}

// Session returns the value of the cookie of a session that ends at a time, of a user with a token.
func (h *Handler) Session(name string, ends time.Time) string {
	return h.site.Auth.Sign(&auth.Token{User: auth.User{Name: name}}, ends)
}

// The names of cookies.
const (
	SessionCookie = auth.SessionCookie
	CSRFCookie    = auth.CSRFCookie
)

// Endpoint is an address of the API.
type Endpoint struct {
	Method, Path string
	Role         Role
}

// Endpoints returns all addresses of the API.
func Endpoints() (all []Endpoint) {
	for _, e := range api.Endpoints() {
		all = append(all, Endpoint{e.Method, e.Path, e.Role})
	}
	return all
}

// Followed returns how many sets of queues the API follows, and for how many clients.
func (h *Handler) Followed() (sets, clients int) {
	return h.api.Followed()
}

// Timeline returns what has happened to a task, in words.
func Timeline(t *inspect.Task, now time.Time) (words []string) {
	for _, h := range page.Timeline(t, now) {
		words = append(words, h.What)
	}
	return words
}
