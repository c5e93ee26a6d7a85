package page

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/godelayed/delayed/web/internal/auth"
	"github.com/godelayed/delayed/web/internal/site"
)

// feeds make live pages anew, each once for all browsers that have it open and may see the same.
type feeds struct {
	mu   sync.Mutex
	feed map[string]*feed
	wg   sync.WaitGroup
}

// feed is a live page.
type feed struct {
	key    string
	stop   context.CancelFunc
	latest []byte // the last event
	subs   map[chan []byte]struct{}
}

const (
	maxFeeds = 1000
	maxSubs  = 1000 // of one feed
)

// subscribe returns a channel of events of a page; nil if there are too many.
func (f *feeds) subscribe(s *shared, q *site.Request, r route) (events chan []byte, leave func()) {
	key := fmt.Sprint(q.Path, "?", q.Args.Encode(), " ", q.User.Role)
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.feed[key]
	if d == nil {
		if len(f.feed) >= maxFeeds || s.Ctx.Err() != nil {
			return nil, nil
		}
		ctx, stop := context.WithCancel(s.Ctx)
		d = &feed{key: key, stop: stop, subs: map[chan []byte]struct{}{}}
		if f.feed == nil {
			f.feed = map[string]*feed{}
		}
		f.feed[key] = d
		own := *q
		own.Ctx = ctx
		f.wg.Go(func() { f.run(s, d, &own, r) })
	}
	if len(d.subs) >= maxSubs {
		return nil, nil
	}
	events = make(chan []byte, 1)
	d.subs[events] = struct{}{}
	if d.latest != nil {
		events <- d.latest
	}
	return events, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if delete(d.subs, events); len(d.subs) == 0 {
			d.stop()
			if f.feed[key] == d {
				delete(f.feed, key)
			}
		}
	}
}

// run makes the page of a feed anew until nobody has it open.
func (f *feeds) run(s *shared, d *feed, q *site.Request, r route) {
	tick := time.NewTicker(s.Config.Refresh)
	defer tick.Stop()
	for {
		event := s.event(q, r)
		f.mu.Lock()
		if !bytes.Equal(event, d.latest) {
			d.latest = event
			for c := range d.subs {
				select {
				case <-c: // a slow browser gets only the latest
				default:
				}
				c <- event // only this goroutine and subscribe send, both under the lock
			}
		}
		f.mu.Unlock()
		select {
		case <-tick.C:
		case <-q.Ctx.Done():
			return
		}
	}
}

// event makes a page's main part, as an event of the kind main, or problem.
func (s *shared) event(q *site.Request, r route) []byte {
	ctx, cancel := context.WithTimeout(q.Ctx, 10*time.Second)
	defer cancel()
	own := *q
	own.Ctx = ctx
	kind, body := "main", []byte(nil)
	p, err := r.Show(s, &own)
	if err == nil {
		body, err = MainPart(p.Template, p.Data)
	}
	if err != nil {
		problem, _ := site.HTTPErrorOf(err)
		kind, body = "problem", []byte(problem.Text)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "event: %s\ndata: ", kind)
	text := json.NewEncoder(&b)
	text.SetEscapeHTML(false)     // the event is no HTML, and a page has so many < that they are a quarter more
	_ = text.Encode(string(body)) // a string and a line end
	return append(b.Bytes(), '\n')
}

// live serves the events of a page: field u is its address.
func (h *Pages) live(w http.ResponseWriter, r *http.Request, user auth.User) {
	target, err := url.Parse(r.URL.Query().Get("u"))
	if err != nil || target.IsAbs() || target.Host != "" {
		http.Error(w, "expected the address of a page in u", http.StatusBadRequest)
		return
	}
	path := target.Path
	if path == "./" {
		path = ""
	}
	page, ok := Routes[path]
	if !ok || page.Show == nil || !h.May(user, page.Role) {
		http.Error(w, "there is no such page", http.StatusNotFound)
		return
	}
	//nolint:contextcheck // the page is made anew for all who have it open
	q, err := h.NewRequest(h.Ctx, user, path, target.Query())
	if err != nil {
		h.fail(w, r, user, err)
		return
	}
	events, leave := h.feeds.subscribe(h.shared, q, page)
	if events == nil {
		http.Error(w, "too many live pages are open", http.StatusServiceUnavailable)
		return
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	mark, secret := []byte(csrfMark), []byte(template.HTMLEscapeString(auth.CSRF(w, r)))
	control := http.NewResponseController(w)
	send := func(event []byte) bool {
		_ = control.SetWriteDeadline(time.Now().Add(site.WriteTimeout)) // not every server has them
		_, err := w.Write(event)
		return err == nil && control.Flush() == nil
	}
	again, alive := time.NewTicker(h.AskAgain), time.NewTicker(site.KeepAlive)
	defer again.Stop()
	defer alive.Stop()
	for ok := send([]byte(": live\n\n")); ok; {
		select {
		case event := <-events:
			ok = send(bytes.ReplaceAll(event, mark, secret))
		case <-alive.C:
			ok = send([]byte(": alive\n\n"))
		case <-again.C:
			now, _, err := h.Auth.User(r)
			ok = err == nil && now.Role == user.Role
		case <-r.Context().Done():
			return
		case <-h.Ctx.Done():
			return
		}
	}
}
