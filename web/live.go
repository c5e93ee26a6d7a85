package web

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
	maxFeeds     = 1000
	maxSubs      = 1000 // of one feed
	askAgain     = time.Minute
	keepAlive    = 15 * time.Second
	writeTimeout = 20 * time.Second
)

// subscribe returns a channel of events of a page; nil if there are too many.
func (f *feeds) subscribe(s *site, q *request, r route) (events chan []byte, leave func()) {
	key := fmt.Sprint(q.path, "?", q.args.Encode(), " ", q.user.Role)
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.feed[key]
	if d == nil {
		if len(f.feed) >= maxFeeds || s.ctx.Err() != nil {
			return nil, nil
		}
		ctx, stop := context.WithCancel(s.ctx)
		d = &feed{key: key, stop: stop, subs: map[chan []byte]struct{}{}}
		if f.feed == nil {
			f.feed = map[string]*feed{}
		}
		f.feed[key] = d
		own := *q
		own.ctx = ctx
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
func (f *feeds) run(s *site, d *feed, q *request, r route) {
	tick := time.NewTicker(s.cfg.Refresh)
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
		case <-q.ctx.Done():
			return
		}
	}
}

// event makes a page's main part, as an event of the kind main, or problem.
func (s *site) event(q *request, r route) []byte {
	ctx, cancel := context.WithTimeout(q.ctx, 10*time.Second)
	defer cancel()
	own := *q
	own.ctx = ctx
	kind, body := "main", []byte(nil)
	p, err := r.show(s, &own)
	if err == nil {
		body, err = mainPart(p.Template, p.Data)
	}
	if err != nil {
		problem, _ := problemOf(err)
		kind, body = "problem", []byte(problem.text)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "event: %s\ndata: ", kind)
	text := json.NewEncoder(&b)
	text.SetEscapeHTML(false)     // the event is no HTML, and a page has so many < that they are a quarter more
	_ = text.Encode(string(body)) // a string and a line end
	return append(b.Bytes(), '\n')
}

// live serves the events of a page: field u is its address.
func (h *Handler) live(w http.ResponseWriter, r *http.Request, user User) {
	target, err := url.Parse(r.URL.Query().Get("u"))
	if err != nil || target.IsAbs() || target.Host != "" {
		http.Error(w, "expected the address of a page in u", http.StatusBadRequest)
		return
	}
	path := target.Path
	if path == "./" {
		path = ""
	}
	page, ok := routes[path]
	if !ok || page.show == nil || !h.site.may(user, page.role) {
		http.Error(w, "there is no such page", http.StatusNotFound)
		return
	}
	//nolint:contextcheck // the page is made anew for all who have it open
	q, err := h.site.newRequest(h.site.ctx, user, path, target.Query())
	if err != nil {
		h.fail(w, r, user, err)
		return
	}
	events, leave := h.feeds.subscribe(h.site, q, page)
	if events == nil {
		http.Error(w, "too many live pages are open", http.StatusServiceUnavailable)
		return
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	mark, secret := []byte(csrfMark), []byte(template.HTMLEscapeString(csrf(w, r)))
	control := http.NewResponseController(w)
	send := func(event []byte) bool {
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every server has them
		_, err := w.Write(event)
		return err == nil && control.Flush() == nil
	}
	again, alive := time.NewTicker(h.site.askAgain), time.NewTicker(keepAlive)
	defer again.Stop()
	defer alive.Stop()
	for ok := send([]byte(": live\n\n")); ok; {
		select {
		case event := <-events:
			ok = send(bytes.ReplaceAll(event, mark, secret))
		case <-alive.C:
			ok = send([]byte(": alive\n\n"))
		case <-again.C:
			now, _, err := h.site.auth.user(r)
			ok = err == nil && now.Role == user.Role
		case <-r.Context().Done():
			return
		case <-h.site.ctx.Done():
			return
		}
	}
}
