package site

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/godelayed/delayed/web/internal/auth"
)

// Hub lets many clients follow what is read once for all of them: events of queues, and live pages.
type Hub struct {
	maxSources, maxClients int
	behind                 int // how many texts a client may be behind

	ctx     context.Context //nolint:containedctx // that of the site
	mu      sync.Mutex
	wg      sync.WaitGroup
	sources map[string]*Source
	clients int
}

// Source is what clients with the same key follow. It runs while there are any.
type Source struct {
	hub     *Hub
	key     string
	stop    context.CancelFunc
	clients map[*Client]struct{}
	shown   []byte // by Show
}

// Client follows a source.
type Client struct {
	Wants any // what Send may ask for

	texts chan []byte // closed if the client is too slow, or the source has ended
	why   string      // that is so; set before texts is closed
}

// NewHub returns a hub that ends with a context. Each client may be some texts behind.
func NewHub(ctx context.Context, maxSources, maxClients, behind int) *Hub {
	return &Hub{maxSources: maxSources, maxClients: maxClients, behind: behind, ctx: ctx, sources: map[string]*Source{}}
}

// Wait waits for the end of all sources, which the end of the context begins.
func (h *Hub) Wait() {
	h.mu.Lock()   // a Join that has not seen the end of the context starts its source before
	h.mu.Unlock() //nolint:staticcheck // nothing else is guarded
	h.wg.Wait()
}

// Len returns how many sources and clients there are.
func (h *Hub) Len() (sources, clients int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sources), h.clients
}

// Join adds a client to the source with a key, which run runs if it is new. It returns nil if there are too many.
func (h *Hub) Join(key string, wants any, run func(context.Context, *Source)) (c *Client, leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sources[key]
	if h.ctx.Err() != nil || h.clients >= h.maxClients || s == nil && len(h.sources) >= h.maxSources {
		return nil, nil
	}
	if s == nil {
		ctx, stop := context.WithCancel(h.ctx)
		s = &Source{hub: h, key: key, stop: stop, clients: map[*Client]struct{}{}}
		h.sources[key] = s
		h.wg.Go(func() {
			run(ctx, s)
			s.end()
		})
	}
	c = &Client{Wants: wants, texts: make(chan []byte, h.behind)}
	s.clients[c] = struct{}{}
	h.clients++
	if s.shown != nil {
		c.texts <- s.shown
	}
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		s.remove(c)
	}
}

// remove forgets a client, and ends a source whose last it was. The caller holds the lock.
func (s *Source) remove(c *Client) {
	if _, ok := s.clients[c]; !ok {
		return
	}
	delete(s.clients, c)
	s.hub.clients--
	if len(s.clients) == 0 {
		s.stop()
		if s.hub.sources[s.key] == s {
			delete(s.hub.sources, s.key)
		}
	}
}

// drop ends a client. The caller holds the lock.
func (s *Source) drop(c *Client, why string) {
	c.why = why
	close(c.texts)
	s.remove(c)
}

func (s *Source) end() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	for c := range s.clients {
		s.drop(c, "the events have ended: ask again")
	}
}

// Send sends each client its text, unless that is nil. A client that does not take its texts is dropped.
func (s *Source) Send(text func(*Client) []byte) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	for c := range s.clients {
		t := text(c)
		if t == nil {
			continue
		}
		select {
		case c.texts <- t:
		default:
			s.drop(c, fmt.Sprintf("this client is %d events behind: read faster, or ask for fewer", s.hub.behind))
		}
	}
}

// Show sends all clients a text in place of those before it, also to clients that come later.
func (s *Source) Show(text []byte) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.shown = text
	for c := range s.clients {
		select {
		case <-c.texts: // a slow client gets only the latest
		default:
		}
		c.texts <- text // only Join and this send, both under the lock
	}
}

// How streams of server-sent events are kept.
const (
	askAgain     = time.Minute
	keepAlive    = 15 * time.Second
	writeTimeout = 20 * time.Second
)

// Stream sends the user of a request the texts of a client, which are server-sent events, as edit changes them. It
// ends when the browser or program goes, has no access any more, or is dropped: then last makes the last event.
func (s *Site) Stream(
	w http.ResponseWriter, r *http.Request, user auth.User, c *Client, edit func([]byte) []byte,
	last func(why string) []byte,
) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	control := http.NewResponseController(w)
	send := func(text []byte) bool {
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every server has them
		_, err := w.Write(text)
		return err == nil && control.Flush() == nil
	}
	again, alive := time.NewTicker(s.AskAgain), time.NewTicker(keepAlive)
	defer again.Stop()
	defer alive.Stop()
	for ok := send([]byte(": open\n\n")); ok; {
		select {
		case text, open := <-c.texts:
			if !open {
				send(last(c.why))
				return
			}
			ok = send(edit(text))
		case <-alive.C:
			ok = send([]byte(": alive\n\n"))
		case <-again.C:
			now, _, err := s.Auth.User(r)
			ok = err == nil && now.Role == user.Role
		case <-r.Context().Done():
			return
		case <-s.Ctx.Done():
			return
		}
	}
}
