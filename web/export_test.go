package web

import (
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// StartJob begins a job and returns its id.
func (h *Handler) StartJob(u User, queue string, s state.Task, f inspect.Filter, a inspect.Action) (string, error) {
	q, err := h.site.newRequest(h.site.ctx, u, "", nil)
	if err != nil {
		return "", err
	}
	j, err := h.site.jobs.start(h.site.ctx, q.ins, order{
		Queue: queue, State: s, Filter: f, What: "Do", Action: a, By: u.Name,
	})
	if err != nil {
		return "", err
	}
	return j.ID, nil
}

// AskAgain makes live pages and streams of events ask so often whether their user still has access.
func (h *Handler) AskAgain(every time.Duration) { h.site.askAgain = every }

// Values of jobs.
const (
	MaxRunning = maxRunning
	MaxJobs    = maxJobs
)

// Routes returns the deeds of all pages with their roles, and whether there is a page to look at, as the deed "".
func Routes() map[string]map[string]Role {
	all := map[string]map[string]Role{}
	for path, r := range routes {
		deeds := map[string]Role{}
		if r.show != nil {
			deeds[""] = r.role
		}
		for name, d := range r.act {
			deeds[name] = d.role
		}
		all[path] = deeds
	}
	return all
}

// Session returns the value of the cookie of a session that ends at a time, of a user with a token.
func (h *Handler) Session(name string, ends time.Time) string {
	return h.site.auth.sign(&Token{User: User{Name: name}}, ends)
}

// The names of cookies.
const (
	SessionCookie = sessionCookie
	CSRFCookie    = csrfCookie
)

// Endpoint is an address of the API.
type Endpoint struct {
	Method, Path string
	Role         Role
}

// Endpoints returns all addresses of the API.
func Endpoints() (all []Endpoint) {
	for _, e := range endpoints() {
		all = append(all, Endpoint{e.method, e.path, e.role})
	}
	return all
}

// Followed returns how many sets of queues the API follows, and for how many clients.
func (h *Handler) Followed() (sets, clients int) {
	h.site.watch.mu.Lock()
	defer h.site.watch.mu.Unlock()
	return len(h.site.watch.all), h.site.watch.size
}

// Timeline returns what has happened to a task, in words.
func Timeline(t *inspect.Task, now time.Time) (words []string) {
	for _, h := range timeline(t, now) {
		words = append(words, h.What)
	}
	return words
}
