package rediscluster

import (
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/fakeredis"
)

func TestDialRefuses(t *testing.T) {
	for url, want := range map[string]string{
		"redis://user:hunter2@a:6379,b:6379/1":    "database 1",
		"redis://user:hunter2@a:6379,b:6379?db=1": `parameter "db"`,
		"redis://user:hunter2@a:6379,b:x":         "server 2",
		"unix:///run/redis.sock":                  "scheme",
		"user:hunter2@a:6379":                     "malformed",
	} {
		rdb, err := Dial(url)
		if err == nil {
			rdb.Close()
			t.Errorf("%s: expected an error", url)
			continue
		}
		if text := err.Error(); !strings.HasPrefix(text, "delayed: rediscluster: ") || !strings.Contains(text, want) ||
			strings.Contains(text, "hunter2") {
			t.Errorf("%s: expected an error about %s, found: %s", url, want, text)
		}
	}
}

// TestDialConnectsOnFirstUse also pins the type of the handle.
func TestDialConnectsOnFirstUse(t *testing.T) {
	var rdb *delayed.Store
	rdb, err := Dial("redis://127.0.0.1:1,127.0.0.1:2")
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	if err := rdb.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "127.0.0.1:2") {
		t.Errorf("Ping without a server: %v", err)
	}
}

func TestCredentialsGoToEveryNode(t *testing.T) {
	b := startFake(t, func([]string) string { return "+OK\r\n" })
	a := startFake(t, func(args []string) string {
		if isClusterSlots(args) {
			return slotsReply("127.0.0.1", b.Port())
		}
		return "+OK\r\n"
	})
	src := open(t, "redis://user:p%40ss@"+a.Addr())
	if _, err := connTo(t, src, "k").Do("GET", "k"); err != nil {
		t.Fatal(err)
	}
	for _, node := range []*fakeredis.Server{a, b} {
		if got := strings.Join(node.Seen()[0], " "); got != "AUTH user p@ss" {
			t.Errorf("the first command was %q", got)
		}
	}
}

// TestTLS expects that a certificate nobody vouches for is refused.
func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	src := open(t, "rediss://"+server.Listener.Addr().String())
	if _, err := src.Conn(t.Context(), "k"); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("expected an error about the certificate, found %v", err)
	}
}
