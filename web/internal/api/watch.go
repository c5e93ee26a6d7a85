package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/web/internal/site"
)

// watchers follow events, each set of queues once for all who want it and may see the same.
type watchers struct {
	ctx context.Context //nolint:containedctx // that of the site

	mu   sync.Mutex
	all  map[string]*watcher
	wg   sync.WaitGroup
	size int // listeners of all watchers
}

// eventFilter says which events somebody wants.
type eventFilter struct {
	kinds    []string
	function string
}

func (f *eventFilter) match(e *inspect.Event) bool {
	if len(f.kinds) > 0 &&
		!slices.ContainsFunc(f.kinds, func(part string) bool { return document.KindMatches(e.Kind.String(), part) }) {
		return false
	}
	means := inspect.Filter{Function: f.function}
	return means.Match(&inspect.Task{Contents: inspect.Contents{Function: e.Function}}, e.At)
}

// watcher follows the events of a set of queues.
type watcher struct {
	stop      context.CancelFunc
	listeners map[*listener]struct{}
}

// listener is a client that wants events.
type listener struct {
	eventFilter

	events chan []byte // closed if the client is too slow, or the watcher has ended
	why    string      // that is so; set before events is closed
}

const (
	maxWatchers  = 20  // sets of queues
	maxListeners = 500 // clients
	eventBuffer  = 256 // events that a client may be behind
)

// listen returns a listener to the events of queues, of all if none is named. The redaction of the inspector is that of
// all for whom as much is hidden.
func (ws *watchers) listen(
	ins *inspect.Inspector, hidden bool, queues []string, f eventFilter,
) (*listener, func(), error) {
	queues = slices.Compact(slices.Sorted(slices.Values(queues)))
	key := fmt.Sprint(hidden, " ", strings.Join(queues, " ")) // names of queues have no spaces
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.ctx.Err() != nil || ws.size >= maxListeners {
		return nil, nil, site.Fail(http.StatusServiceUnavailable, "too many programs follow events: try again later")
	}
	w := ws.all[key]
	if w == nil {
		if len(ws.all) >= maxWatchers {
			return nil, nil, site.Fail(
				http.StatusServiceUnavailable, "too many sets of queues are followed: follow all queues, or try "+
					"again later")
		}
		ctx, stop := context.WithCancel(ws.ctx)
		w = &watcher{stop, map[*listener]struct{}{}}
		if ws.all == nil {
			ws.all = map[string]*watcher{}
		}
		ws.all[key] = w
		ws.wg.Go(func() { ws.follow(ctx, key, w, ins, queues) })
	}
	l := &listener{eventFilter: f, events: make(chan []byte, eventBuffer)}
	w.listeners[l] = struct{}{}
	ws.size++
	return l, func() {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		ws.remove(key, w, l)
	}, nil
}

// remove forgets a listener, and ends a watcher whose last it was. The caller holds the lock.
func (ws *watchers) remove(key string, w *watcher, l *listener) {
	if _, ok := w.listeners[l]; !ok {
		return
	}
	delete(w.listeners, l)
	ws.size--
	if len(w.listeners) == 0 {
		w.stop()
		if ws.all[key] == w {
			delete(ws.all, key)
		}
	}
}

// follow tells the listeners of a watcher what happens.
func (ws *watchers) follow(ctx context.Context, key string, w *watcher, ins *inspect.Inspector, queues []string) {
	trouble := ""
	for e, err := range ins.Watch(ctx, queues...) {
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			if text := err.Error(); text != trouble { // Watch tells of it every few seconds
				trouble = text
				told := eventText("problem", problemAnswer{
					http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable, text,
				})
				ws.tell(key, w, func(*listener) []byte { return told })
			}
			continue
		}
		trouble = ""
		var all, missed []byte // made once for all listeners
		ws.tell(key, w, func(l *listener) []byte {
			switch {
			case l.match(&e):
				if all == nil {
					all = eventText("", document.EventOf(&e))
				}
				return all
			case e.Missed > 0:
				if missed == nil {
					missed = eventText("", document.MissedOf(&e))
				}
				return missed
			}
			return nil
		})
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for l := range w.listeners {
		l.why = "the events have ended: ask again"
		close(l.events)
		ws.remove(key, w, l)
	}
}

// tell sends each listener its text. A client that does not take its events is dropped.
func (ws *watchers) tell(key string, w *watcher, text func(*listener) []byte) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for l := range w.listeners {
		event := text(l)
		if event == nil {
			continue
		}
		select {
		case l.events <- event:
		default:
			l.why = fmt.Sprintf("this client is %d events behind: read faster, or ask for fewer", eventBuffer)
			close(l.events)
			ws.remove(key, w, l)
		}
	}
}

// eventText writes a document as a server-sent event; kind "" is that of most.
func eventText(kind string, v any) []byte {
	text, err := call.JSON(v)
	if err != nil {
		return []byte(": an event cannot be written\n\n")
	}
	if kind != "" {
		kind = "event: " + kind + "\n"
	}
	return []byte(kind + "data: " + string(text) + "\n\n")
}
