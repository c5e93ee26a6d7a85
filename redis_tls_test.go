package delayed_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
)

func TestDialTLS(t *testing.T) {
	t.Parallel()
	certs := redistest.NewTLS(t)
	_, addr := certs.Start(t)
	for name, c := range map[string]struct {
		query    url.Values
		expected string // "": it works
	}{
		"all":         {certs.Query(), ""},
		"authority":   {certs.Query("ca"), "unknown authority"},
		"name":        {certs.Query("server_name"), "127.0.0.1"},
		"certificate": {certs.Query("cert", "key"), "certificate required"},
	} {
		rdb, err := delayed.Dial("rediss://" + addr + "?" + c.query.Encode())
		if err != nil {
			t.Fatal(err)
		}
		defer rdb.Close()
		err = rdb.Ping(t.Context())
		if err != nil && name == "certificate" && strings.Contains(err.Error(), "connection reset") {
			continue // the server has closed the connection before its alert was read
		}
		if (err == nil) != (c.expected == "") || err != nil && !strings.Contains(err.Error(), c.expected) {
			t.Errorf("%s: expected an error with %q, found %v", name, c.expected, err)
		}
	}
}

func TestParametersOfURL(t *testing.T) {
	for rawURL, expected := range map[string]string{
		"redis://a?ca=/ca.pem":               "expected scheme rediss",
		"rediss://a?ca=/none/ca.pem":         "/none/ca.pem",
		"rediss://a?ca=redis_tls_test.go":    "holds no certificate",
		"rediss://a?cert=/c.pem":             "expected both",
		"rediss://a?cert=/c.pem&key=/k.pem":  "cert and key",
		"redis://a?dial_timeout=2":           "dial_timeout",
		"redis://a?dial_timeout=1ns":         "dial_timeout",
		"redis://a?pool_size=0":              "pool_size",
		"redi://a":                           "expected redis or rediss, or unix as in unix:///path/redis.sock",
		"redis://a?pool_sise=1":              `"pool_sise"`,
		"redis://a?dial_timeout=2s":          "",
		"redis://a/3?pool_size=2":            "",
		"rediss://a?server_name=redis.local": "",
	} {
		rdb, err := delayed.Dial(rawURL)
		if err == nil {
			rdb.Close()
		}
		if (err == nil) != (expected == "") || err != nil &&
			(!strings.HasPrefix(err.Error(), "delayed: ") || !strings.Contains(err.Error(), expected)) {
			t.Errorf("%s: expected an error with %q, found %v", rawURL, expected, err)
		}
	}
	calls, _, _, err := redisstore.DialSources("redis://a?pool_size=2&dial_timeout=3s")
	if err != nil {
		t.Fatal(err)
	}
	if pool, ok := calls.(redisstore.PoolSource); !ok || pool.Pool.MaxActive != 2 {
		t.Errorf("expected a pool of 2 connections, found %+v", calls)
	}
}
