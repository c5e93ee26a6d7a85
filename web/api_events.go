package web

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/godelayed/delayed/inspect/document"
)

var kindParam = param{
	Name: "kind", Kind: "text", Many: true,
	Text: "only these kinds, or those with such a part of their name, such as failed; may be repeated",
}

func eventParams() []param { return []param{queuesParam, kindParam, functionParam} }

// apiEvents sends what happens in workers, as server-sent events.
func apiEvents(s *site, w http.ResponseWriter, c *apiCall) error {
	_, names, err := c.described(s)
	if err != nil {
		return err
	}
	if err := checkKinds(c.args[kindParam.Name]); err != nil {
		return err
	}
	if c.http.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return nil
	}
	filter := eventFilter{c.args[kindParam.Name], c.args.Get(functionParam.Name)}
	l, leave, err := s.watch.listen(c.ins, s.hidden(c.user), names, filter)
	if err != nil {
		return err
	}
	defer leave()
	s.sendEvents(w, c, l)
	return nil
}

// sendEvents sends events until the client goes, is too slow, or may not see them any more.
func (s *site) sendEvents(w http.ResponseWriter, c *apiCall, l *listener) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	control := http.NewResponseController(w)
	send := func(text []byte) bool {
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every server has them
		_, err := w.Write(text)
		return err == nil && control.Flush() == nil
	}
	again, alive := time.NewTicker(s.askAgain), time.NewTicker(keepAlive)
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
			now, _, err := s.auth.user(c.http)
			ok = err == nil && now.Role == c.user.Role
		case <-c.ctx.Done():
			return
		case <-s.ctx.Done():
			return
		}
	}
}

func checkKinds(parts []string) error {
	for _, part := range parts {
		known := func(name string) bool { return document.KindMatches(name, part) }
		if !slices.ContainsFunc(document.EventKinds(), known) {
			return bad("parameter kind: expected one of " + strings.Join(document.EventKinds(), ", ") +
				", or a part of one")
		}
	}
	return nil
}
