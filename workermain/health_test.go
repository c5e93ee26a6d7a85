//go:build unix

package workermain

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	logrustest "github.com/sirupsen/logrus/hooks/test"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// check asks a program for a health check.
func (c *child) check(path string) (int, health) {
	c.t.Helper()
	resp, err := http.Get("http://" + c.sees(`HTTP requests".* address="(.+?)"`) + path)
	if err != nil {
		c.t.Fatalf("%v\n%s", err, c.Output())
	}
	defer resp.Body.Close()
	var h health
	if err := json.NewDecoder(resp.Body).Decode(&h); err != nil {
		c.t.Fatalf("%s: %s: %v", path, resp.Status, err)
	}
	if got := resp.Header.Get("Content-Type"); got != "application/json" {
		c.t.Errorf("%s: Content-Type %q", path, got)
	}
	return resp.StatusCode, h
}

// awaitCheck waits until a health check answers with a code and a reason that begins as given.
func (c *child) awaitCheck(path string, code int, reason string) health {
	c.t.Helper()
	late := time.After(limit)
	for {
		got, h := c.check(path)
		if got == code && strings.HasPrefix(h.Reason, reason) && (reason != "" || h.Reason == "") {
			return h
		}
		select {
		case <-late:
			c.t.Fatalf("%s: waited for %d %q, found %d %+v\n%s", path, code, reason, got, h, c.Output())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func TestHealthOfARunningWorker(t *testing.T) {
	q, flags := newQueue(t)
	c := launch(t, command("main", append(flags, "-listen", "127.0.0.1:0", "-log-format", "text")...))
	h := c.awaitCheck("/readyz", 200, "")
	if h.Status != "ok" || h.State != "running" || !h.Connected || len(h.Worker) != 32 || h.Busy != 0 {
		t.Errorf("found %+v", h)
	}
	delay(t, q, hold)
	c.sees("holding")
	if h := c.awaitCheck("/healthz", 200, ""); h.Busy != 1 {
		t.Errorf("expected one busy handler, found %+v", h)
	}
	c.sends(syscall.SIGTERM)
	if h := c.awaitCheck("/readyz", 503, "stopping"); h.Status != "unavailable" || !h.Connected {
		t.Errorf("found %+v", h)
	}
	c.awaitCheck("/healthz", 200, "")
	c.sends(syscall.SIGUSR1)
	c.ends(exitClean)
}

func TestHealthKnowsTwoPathsOnly(t *testing.T) {
	_, flags := newQueue(t)
	c := launch(t, command("main", append(flags, "-listen", "127.0.0.1:0")...))
	address := c.sees(`HTTP requests".* address="(.+?)"`)
	for _, test := range []struct {
		method, path string
		want         int
	}{{"HEAD", "/healthz", 200}, {"POST", "/healthz", 405}, {"GET", "/", 404}, {"GET", "/healthz/x", 404}} {
		req, err := http.NewRequestWithContext(t.Context(), test.method, "http://"+address+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != test.want {
			t.Errorf("%s %s: expected %d, found %d", test.method, test.path, test.want, resp.StatusCode)
		}
	}
}

func TestHealthWhileStarting(t *testing.T) {
	_, flags := newQueue(t)
	c := launch(t, command("setup", append(flags, "-listen", "127.0.0.1:0")...))
	c.sees("setting up")
	if h := c.awaitCheck("/readyz", 503, "starting"); h.State != "starting" {
		t.Errorf("found %+v", h)
	}
	c.awaitCheck("/healthz", 200, "")
	c.sends(syscall.SIGUSR1)
	c.awaitCheck("/readyz", 200, "")
	c.sends(syscall.SIGTERM)
	c.ends(exitClean)
}

func TestHealthWithoutRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c := launch(t, command("main", "-redis", server.URL(), "-queues", "mail", "-listen", "127.0.0.1:0",
		"-heartbeat-life", "500ms"))
	c.awaitCheck("/readyz", 200, "")
	server.Pause(t)
	if h := c.awaitCheck("/healthz", 503,
		"Redis has not confirmed the heartbeat within its life of 500ms"); h.Connected || h.State != "running" {
		t.Errorf("found %+v", h)
	}
	c.awaitCheck("/readyz", 503, "not connected to Redis")
	server.Resume(t)
	c.awaitCheck("/healthz", 200, "")
	c.awaitCheck("/readyz", 200, "")
	c.sends(syscall.SIGTERM)
	c.ends(exitClean)
}

// TestHealthEndsWithRun expects that a program which goes on after Run does not answer HTTP requests any more.
func TestHealthEndsWithRun(t *testing.T) {
	_, flags := newQueue(t)
	var address string
	log, lines := logrustest.NewNullLogger()
	code := run(Config{
		Args: append(flags, "-listen", "127.0.0.1:0", "-once"), Functions: []any{say},
		Worker: delayed.WorkerConfig{Logger: log},
	}, func(string) (string, bool) { return "", false }, func() []string { return nil }) // no environment
	for _, line := range lines.AllEntries() {
		if text, ok := line.Data["address"].(string); ok && line.Message == "answering HTTP requests" {
			address = text
		}
	}
	if code != exitClean || address == "" {
		t.Fatalf("code %d, address %q", code, address)
	}
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		t.Errorf("%s is open after Run", address)
	}
}

func TestHealthAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, flags := newQueue(t)
	c := launch(t, command("main", append(flags, "-listen", l.Addr().String())...))
	c.ends(exitFailed)
	c.sees(fmt.Sprintf("-listen: listen tcp %s: .*in use", l.Addr()))
}
