package web_test

import (
	"bufio"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/web"
)

// stream is a live page that is open.
type stream struct {
	b     *bench
	resp  *http.Response
	lines *bufio.Scanner
}

// open opens a live page as the user of a role. header is added to the request's.
func (b *bench) open(srv *httptest.Server, r web.Role, page string, header http.Header) *stream {
	b.T.Helper()
	req, err := http.NewRequestWithContext(b.T.Context(), http.MethodGet, srv.URL+"/live?u="+url.QueryEscape(page), nil)
	b.Must(err)
	req.Header.Set("Authorization", "Bearer "+secret(r))
	maps.Copy(req.Header, header)
	resp, err := http.DefaultClient.Do(req)
	b.Must(err)
	b.T.Cleanup(func() { resp.Body.Close() })
	s := &stream{b, resp, bufio.NewScanner(resp.Body)}
	s.lines.Buffer(nil, 1<<20)
	return s
}

// next returns the next main part, "" at the end. It fails the test if the page cannot be made.
func (s *stream) next() (body string) {
	s.b.T.Helper()
	kind := ""
	for more := s.lines.Scan(); more; more = s.lines.Scan() {
		if event, ok := strings.CutPrefix(s.lines.Text(), "event: "); ok {
			kind = event
		}
		if data, ok := strings.CutPrefix(s.lines.Text(), "data: "); ok {
			s.b.Must(json.Unmarshal([]byte(data), &body))
			if kind != "main" {
				s.b.T.Fatalf("an event of kind %q: %s", kind, body)
			}
			return body
		}
	}
	return ""
}

// TestLivePagesOutliveTimeouts keeps a live page open for longer than a server lets requests go on.
func TestLivePagesOutliveTimeouts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const timeout = 300 * time.Millisecond
	srv := httptest.NewUnstartedServer(b.h)
	srv.Config.ReadTimeout, srv.Config.WriteTimeout = timeout, timeout
	srv.Start()
	t.Cleanup(srv.Close)
	s := b.open(srv, web.Viewer, "./", nil)
	for began := time.Now(); time.Since(began) < 4*timeout; {
		_, err := b.q.Enqueue(bg, delayed.NewGoTask("mail.Welcome")) // so that the page changes
		b.Must(err)
		if s.next() == "" {
			t.Fatalf("after %v: %v", time.Since(began), s.lines.Err())
		}
	}
}

// TestLivePagesOfRoles opens the same live page in two roles: each gets what it may see, with the secret of its browser
// in the forms.
func TestLivePagesOfRoles(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *web.Config) { c.HideArguments = true })
	srv := httptest.NewServer(b.h)
	t.Cleanup(srv.Close)
	b.python("t", []any{"hush"}, nil, delayed.In(time.Hour))
	cookie := http.Header{"Cookie": {web.CSRFCookie + "=the-secret-of-this-browser"}}
	page := b.open(srv, web.Operator, taskAt("t"), cookie).next()
	b.has(page, "hush", `name="csrf" value="the-secret-of-this-browser"`)
	if page := b.open(srv, web.Viewer, taskAt("t"), nil).next(); strings.Contains(page, "hush") || page == "" {
		t.Errorf("the viewer gets %q", page)
	}
	for _, address := range []string{"enqueue?queue=mail&function=mail.Welcome", "edit?queue=mail&id=t", "live", "x"} {
		if s := b.open(srv, web.Operator, address, nil); s.resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", address, s.resp.StatusCode)
		}
	}
}

// TestLivePagesEndWithAccess takes access away from a user who has a live page open, and follows events.
func TestLivePagesEndWithAccess(t *testing.T) {
	t.Parallel()
	var gone atomic.Bool
	b := newBench(t, func(c *web.Config) {
		c.Tokens = nil
		c.Authorize = func(*http.Request) (web.User, error) {
			if gone.Load() {
				return web.User{Name: "ann", Role: web.Viewer}, web.ErrUnauthorized
			}
			return web.User{Name: "ann", Role: web.Viewer}, nil
		}
	})
	b.h.AskAgain(10 * time.Millisecond)
	srv := httptest.NewServer(b.h)
	t.Cleanup(srv.Close)
	s := b.open(srv, web.Viewer, "./", nil)
	if s.next() == "" {
		t.Fatal("the page is not live")
	}
	events, _ := b.follow(srv, web.Viewer, "")
	gone.Store(true)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for s.lines.Scan() { // what else comes
		}
	}()
	redistest.Await(b.Bench, "the end of the live page", ended)
	b.Until("the end of the events", func() bool {
		select {
		case _, more := <-events:
			return !more
		default:
			return false
		}
	})
}
