package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/web/internal/site"
)

var kindParam = param{
	Name: "kind", Kind: "text", Many: true,
	Text: "only these kinds, or those with such a part of their name, such as failed; may be repeated",
}

const (
	maxSets    = 20  // sets of queues that are followed, each once for all who may see the same
	maxClients = 500 // that follow them
	maxBehind  = 256 // events that a client may be behind
)

// eventFilter is which events a client wants.
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

// apiEvents sends what happens in workers, as server-sent events.
func apiEvents(w http.ResponseWriter, c *apiCall) error {
	_, queues, err := c.described()
	if err != nil {
		return err
	}
	filter := &eventFilter{c.Args[kindParam.Name], c.Args.Get(functionParam.Name)}
	for _, part := range filter.kinds {
		known := func(name string) bool { return document.KindMatches(name, part) }
		if !slices.ContainsFunc(document.EventKinds(), known) {
			return site.Bad("parameter kind: expected one of " + strings.Join(document.EventKinds(), ", ") +
				", or a part of one")
		}
	}
	if c.http.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return nil
	}
	queues = slices.Compact(slices.Sorted(slices.Values(queues)))
	// The redaction of the inspector is that of all for whom as much is hidden. Names of queues have no spaces.
	key := fmt.Sprint(c.hidden(), " ", strings.Join(queues, " "))
	client, leave := c.events.Join(key, filter, func(ctx context.Context, s *site.Source) {
		sendEvents(ctx, s, c.Ins, queues)
	})
	if client == nil {
		return site.Fail(http.StatusServiceUnavailable,
			"too many programs follow events, or too many sets of queues: follow all queues, or try again later")
	}
	defer leave()
	c.site.Stream(w, c.http, c.User, client, func(event []byte) []byte { return event }, problemEvent)
	return nil
}

// sendEvents sends the clients of a source what happens in queues, in all if none is named.
func sendEvents(ctx context.Context, s *site.Source, ins *inspect.Inspector, queues []string) {
	problem := ""
	for e, err := range ins.Watch(ctx, queues...) {
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			if text := err.Error(); text != problem { // Watch repeats it every few seconds
				problem = text
				event := problemEvent(text)
				s.Send(func(*site.Client) []byte { return event })
			}
			continue
		}
		problem = ""
		var all, missed []byte // made once for all clients
		s.Send(func(c *site.Client) []byte {
			filter, _ := c.Wants.(*eventFilter)
			switch {
			case filter.match(&e):
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
}

// problemEvent is an event with the reason why there are none.
func problemEvent(text string) []byte {
	const status = http.StatusServiceUnavailable
	return eventText("problem", problemAnswer{http.StatusText(status), status, text})
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
