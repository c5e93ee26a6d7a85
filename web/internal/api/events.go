package api

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/web/internal/site"
)

var kindParam = param{
	Name: "kind", Kind: "text", Many: true,
	Text: "only these kinds, or those with such a part of their name, such as failed; may be repeated",
}

func eventParams() []param { return []param{queuesParam, kindParam, functionParam} }

// apiEvents sends what happens in workers, as server-sent events.
func apiEvents(s *shared, w http.ResponseWriter, c *apiCall) error {
	_, names, err := c.described(s)
	if err != nil {
		return err
	}
	if err := checkKinds(c.Args[kindParam.Name]); err != nil {
		return err
	}
	if c.http.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return nil
	}
	filter := eventFilter{c.Args[kindParam.Name], c.Args.Get(functionParam.Name)}
	l, leave, err := s.watch.listen(c.Ins, s.Hidden(c.User), names, filter)
	if err != nil {
		return err
	}
	defer leave()
	s.sendEvents(w, c, l)
	return nil
}

// sendEvents sends events until the client goes, is too slow, or may not see them any more.
func (s *shared) sendEvents(w http.ResponseWriter, c *apiCall, l *listener) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	control := http.NewResponseController(w)
	send := func(text []byte) bool {
		_ = control.SetWriteDeadline(time.Now().Add(site.WriteTimeout)) // not every server has them
		_, err := w.Write(text)
		return err == nil && control.Flush() == nil
	}
	again, alive := time.NewTicker(s.AskAgain), time.NewTicker(site.KeepAlive)
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
			now, _, err := s.Auth.User(c.http)
			ok = err == nil && now.Role == c.User.Role
		case <-c.Ctx.Done():
			return
		case <-s.Ctx.Done():
			return
		}
	}
}

func checkKinds(parts []string) error {
	for _, part := range parts {
		known := func(name string) bool { return document.KindMatches(name, part) }
		if !slices.ContainsFunc(document.EventKinds(), known) {
			return site.Bad("parameter kind: expected one of " + strings.Join(document.EventKinds(), ", ") +
				", or a part of one")
		}
	}
	return nil
}
