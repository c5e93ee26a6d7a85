package redissentinel

import (
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestDialRefuses(t *testing.T) {
	for url, want := range map[string]string{
		"redis://user:hunter2@a,b":                               "?master=",
		"redis://user:hunter2@a,b?master=":                       "?master=",
		"redis://user:hunter2@a,b?master=m&sentinel_pass=hunter": "sentinel_password",
		"redis://user:hunter2@a,b?master=m&sentinel_user=hunter": "sentinel_password",
		"redis://hunter@a,b?master=m":                            "a user without a password",
		"redis://user:hunter2@a,b/x?master=m":                    "database",
		"redis://user:hunter2@a,b:x?master=m":                    "server 2",
		"unix:///run/redis.sock?master=m":                        "scheme",
	} {
		rdb, err := Dial(url)
		if err == nil {
			rdb.Close()
			t.Errorf("%s: expected an error", url)
			continue
		}
		if text := err.Error(); !strings.HasPrefix(text, "delayed: redissentinel: ") || !strings.Contains(text, want) ||
			strings.Contains(text, "hunter") {
			t.Errorf("%s: expected an error about %s, found: %s", url, want, text)
		}
	}
}

func TestDialConnectsOnFirstUse(t *testing.T) {
	rdb, err := Dial("redis://127.0.0.1:1,127.0.0.1:2?master=m")
	if err != nil {
		t.Fatal(err)
	}
	if err := rdb.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "127.0.0.1:2") {
		t.Errorf("Ping without a Sentinel: %v", err)
	}
	if err := rdb.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestDefaultPort(t *testing.T) {
	src := open(t, "redis://a,b:1?master=m")
	if got := strings.Join(src.sentinels.addrs, " "); got != "a:26379 b:1" {
		t.Errorf("found %s", got)
	}
	if src.Slot("a") != 0 || src.Slot("b") != 0 {
		t.Error("Slot: expected 0 for every key")
	}
}

// TestTLS expects that a Sentinel whose certificate nobody vouches for is refused.
func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	src := open(t, "rediss://"+server.Listener.Addr().String()+"?master=m")
	if _, err := src.Conn(t.Context(), "k"); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("expected an error about the certificate, found %v", err)
	}
}
