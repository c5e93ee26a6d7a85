//go:build unix

package workermain

import (
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/godelayed/delayed"
)

// get asks a program for a path and returns status and body.
func (c *child) get(path string) (int, string) {
	c.t.Helper()
	resp, err := http.Get("http://" + c.sees(`HTTP requests".* address="(.+?)"`) + path)
	if err != nil {
		c.t.Fatalf("%v\n%s", err, c.Output())
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatalf("%s: %v", path, err)
	}
	return resp.StatusCode, string(body)
}

// expects checks an answer: its status, and something that its body contains.
func (c *child) expects(path string, status int, part string) {
	c.t.Helper()
	if got, body := c.get(path); got != status || !strings.Contains(body, part) {
		c.t.Errorf("%s: expected %d with %q, found %d:\n%.500s", path, status, part, got, body)
	}
}

// TestHandlersOfTheProgram: they get the worker's handle, /healthz is never theirs, and /debug is guarded.
func TestHandlersOfTheProgram(t *testing.T) {
	_, flags := newQueue(t)
	c := launch(t, command("serving", append(flags, "-listen", "127.0.0.1:0")...))
	c.awaitCheck("/readyz", 200, "")
	c.awaitCheck("/healthz", 200, "")
	c.expects("/metrics", 200, "redis true")
	c.expects("/debug/vars", 404, "")
	c.expects("/debug/pprof/", 404, "")
	c.expects("/debug", 404, "")
	c.sends(syscall.SIGTERM)
	c.ends(exitClean)
}

func TestDebug(t *testing.T) {
	_, flags := newQueue(t)
	c := launch(t, command("serving", append(flags, "-listen", "127.0.0.1:0", "-debug")...))
	c.expects("/debug/vars", 200, `"memstats"`)
	c.expects("/debug/pprof/", 200, "goroutine?debug=1\n")
	c.expects("/debug/pprof/goroutine?debug=1", 200, "workermain.(*program).work")
	c.expects("/debug/pprof/heap", 200, "\x1f\x8b") // gzip, as go tool pprof reads it
	c.expects("/debug/pprof/profile?seconds=0.05", 200, "\x1f\x8b")
	c.expects("/debug/pprof/trace?seconds=0.05", 200, "go 1.")
	c.expects("/debug/pprof/nonsense", 404, "unknown profile")
	for _, seconds := range []string{"x", "0", "-1", "56", "NaN", "1e300"} {
		c.expects("/debug/pprof/profile?seconds="+seconds, 400, "expected a number from 0 to 55")
	}
	c.expects("/debug/pprof/cmdline", 404, "") // flags may have passwords
	c.sends(syscall.SIGTERM)
	c.ends(exitClean)
}

// TestHandlerThatPanics: that is a line of the program's log, and the program goes on.
func TestHandlerThatPanics(t *testing.T) {
	_, flags := newQueue(t)
	c := launch(t, command("serving", append(flags, "-listen", "127.0.0.1:0", "-log-format", "json")...))
	address := c.sees(`"address":"(.+?)"`)
	if resp, err := http.Get("http://" + address + "/panic"); err == nil {
		resp.Body.Close()
		t.Errorf("a panic is answered with %s", resp.Status)
	}
	c.sees(`"error":"http: panic serving [^"]*ouch\\u001b.*"msg":"an HTTP request went wrong"`)
	c.sends(syscall.SIGTERM)
	c.ends(exitClean)
}

func TestPatternThatIsRefused(t *testing.T) {
	_, flags := newQueue(t)
	c := launch(t, command("bad pattern", append(flags, "-listen", "127.0.0.1:0")...))
	c.ends(exitFailed)
	c.sees("Config.Serve: panic: .*no slash")
}

// TestDefaultMuxStaysEmpty: this package adds no pages to the server of a program that uses http.DefaultServeMux. The
// only one there is that of package expvar, which the tests import.
func TestDefaultMuxStaysEmpty(t *testing.T) {
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/profile", "/healthz"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, pattern := http.DefaultServeMux.Handler(req); pattern != "" {
			t.Errorf("%s is answered by %q", path, pattern)
		}
	}
}

func TestLocal(t *testing.T) {
	for _, test := range []struct {
		from, host, header string
		want               bool
	}{
		{"127.0.0.1:5", "localhost:8080", "", true},
		{"127.8.0.1:5", "127.0.0.1:8080", "", true},
		{"[::1]:5", "[::1]:8080", "", true},
		{"[::1]:5", "[::1]", "", true},
		{"[::1]:5", "localhost", "", true},
		{"[::ffff:127.0.0.1]:5", "127.0.0.1", "", true},
		{"10.0.0.1:5", "localhost:8080", "", false},
		{"[fe80::1%eth0]:5", "localhost:8080", "", false},
		{"127.0.0.1:5", "rebound.example.com:8080", "", false},
		{"127.0.0.1:5", "10.0.0.1:8080", "", false},
		{"127.0.0.1:5", "localhost.example.com", "", false},
		{"127.0.0.1:5", "", "", false},
		{"", "localhost", "", false},
		{"@", "localhost", "", false},
		{"127.0.0.1:5", "localhost", "X-Forwarded-For", false},
		{"127.0.0.1:5", "localhost", "Forwarded", false},
		{"127.0.0.1:5", "localhost", "X-Real-IP", false},
		{"127.0.0.1:5", "localhost", "Via", false},
		{"127.0.0.1:5", "localhost", "X-Forwarded-Host", false},
		{"127.0.0.1:5", "localhost", "Accept", true},
	} {
		r := &http.Request{RemoteAddr: test.from, Host: test.host, Header: http.Header{}}
		if test.header != "" {
			r.Header.Set(test.header, "1.2.3.4")
		}
		if test.header != "" && !test.want { // a client that has sent an empty one, before the proxy added its own
			empty := &http.Request{RemoteAddr: test.from, Host: test.host, Header: http.Header{}}
			empty.Header.Add(test.header, "")
			empty.Header.Add(test.header, "1.2.3.4")
			if local(empty) {
				t.Errorf("%q is not seen behind an empty one", test.header)
			}
		}
		if got := local(r); got != test.want {
			t.Errorf("from %q to %q with %q: expected %v, found %v", test.from, test.host, test.header, test.want, got)
		}
	}
}

// TestDebugAcrossSites refuses what a browser asks for on behalf of another site's page.
func TestDebugAcrossSites(t *testing.T) {
	for site, want := range map[string]bool{
		"none": true, "same-origin": true, "same-site": false, "cross-site": false,
	} {
		r := &http.Request{RemoteAddr: "127.0.0.1:5", Host: "localhost", Header: http.Header{}}
		r.Header.Set("Sec-Fetch-Site", site)
		if got := local(r); got != want {
			t.Errorf("Sec-Fetch-Site %s: expected %v, found %v", site, want, got)
		}
	}
}

// TestServeIsNotCalledWithoutListen: then nobody could ask.
func TestServeIsNotCalledWithoutListen(t *testing.T) {
	_, flags := newQueue(t)
	code := run(Config{
		Args: append(flags, "-once"), Functions: []any{say},
		Serve: func(*http.ServeMux, *delayed.Store) error {
			t.Error("Serve was called")
			return nil
		},
	}, func(string) (string, bool) { return "", false }, func() []string { return nil }) // no environment
	if code != exitClean {
		t.Errorf("code %d", code)
	}
}
