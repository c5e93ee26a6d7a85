package web

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/inspect/document"
)

var kindParam = param{
	Name: "kind", Kind: "text", Many: true,
	Text: "only these kinds, or those with such a part of their name, such as failed; may be repeated",
}

func eventParams() []param { return []param{queuesParam, kindParam, functionParam} }

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

// apiEvents sends what happens in workers, as server-sent events.
func apiEvents(a *api, w http.ResponseWriter, c *apiCall) {
	_, names, err := c.described(a.site)
	if err == nil {
		err = checkKinds(c.args[kindParam.Name])
	}
	if err != nil {
		a.fail(w, c.http, err)
		return
	}
	if c.http.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	filter := eventFilter{c.args[kindParam.Name], c.args.Get(functionParam.Name)}
	l, leave, err := a.events.listen(c, names, filter)
	if err != nil {
		a.fail(w, c.http, err)
		return
	}
	defer leave()
	a.stream(w, c, l)
}

// stream sends events until the client goes, is too slow, or may not see them any more.
func (a *api) stream(w http.ResponseWriter, c *apiCall, l *listener) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	control := http.NewResponseController(w)
	send := func(text []byte) bool {
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every server has them
		_, err := w.Write(text)
		return err == nil && control.Flush() == nil
	}
	again, alive := time.NewTicker(reauthorize), time.NewTicker(keepAlive)
	defer again.Stop()
	defer alive.Stop()
	for ok := send([]byte(": events\n\n")); ok; {
		select {
		case text, open := <-l.events:
			if !open {
				send(eventText("problem", problemAnswer{
					http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable, l.why,
				}))
				return
			}
			ok = send(text)
		case <-alive.C:
			ok = send([]byte(": alive\n\n"))
		case <-again.C:
			now, _, err := a.site.auth.user(c.http)
			ok = err == nil && now.Role == c.user.Role
		case <-c.ctx.Done():
			return
		case <-a.site.ctx.Done():
			return
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

func checkKinds(parts []string) error {
	for _, part := range parts {
		known := func(name string) bool { return document.KindMatches(name, part) }
		if !slices.ContainsFunc(document.EventKinds(), known) {
			return bad("parameter kind: expected one of " + strings.Join(document.EventKinds(), ", ") + ", or a part of one")
		}
	}
	return nil
}
