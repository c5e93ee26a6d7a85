package embedded_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/embedded"
)

func info(t *testing.T, conn redis.Conn, sections ...any) map[string]string {
	t.Helper()
	text, err := redis.String(conn.Do("INFO", sections...))
	if err != nil {
		t.Fatalf("INFO %v: %v", sections, err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSuffix(line, "\r\n"), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

func TestInfo(t *testing.T) {
	srv := start(t, embedded.Config{})
	conn := dial(t, srv)
	all := info(t, conn)
	for name, want := range map[string]string{
		"redis_version":     `^7\.0\.0$`,
		"run_id":            `^[0-9a-f]{40}$`,
		"tcp_port":          `^` + srv.Addr()[len("127.0.0.1:"):] + `$`,
		"role":              `^master$`,
		"loading":           `^0$`,
		"maxmemory_policy":  `^noeviction$`,
		"connected_clients": `^1$`,
		"cluster_enabled":   `^0$`,
	} {
		if !regexp.MustCompile(want).MatchString(all[name]) {
			t.Errorf("INFO: %s: expected %s, found %q", name, want, all[name])
		}
	}
	again := info(t, dial(t, srv), "server")
	if again["run_id"] != all["run_id"] {
		t.Errorf("run_id changed from %s to %s", all["run_id"], again["run_id"])
	}
	if _, ok := again["role"]; ok {
		t.Error("INFO server has the field role")
	}
	if got := info(t, conn, "SERVER", "replication"); got["run_id"] == "" || got["role"] == "" || got["loading"] != "" {
		t.Errorf("INFO SERVER replication: %v", got)
	}
	if got := info(t, conn, "none"); len(got) != 0 {
		t.Errorf("INFO none: %v", got)
	}
	if other := info(t, dial(t, start(t, embedded.Config{})), "server"); other["run_id"] == all["run_id"] {
		t.Error("two servers have the same run_id")
	}
}

func TestRoleAndConfig(t *testing.T) {
	conn := dial(t, start(t, embedded.Config{}))
	var role string
	if reply, err := redis.Values(conn.Do("ROLE")); err != nil || len(reply) != 3 {
		t.Errorf("ROLE: %v, %v", reply, err)
	} else if _, err := redis.Scan(reply, &role); err != nil || role != "master" {
		t.Errorf("ROLE: %q, %v", role, err)
	}
	for pattern, want := range map[string]map[string]string{
		"maxmemory-policy": {"maxmemory-policy": "noeviction"},
		"MAXMEMORY*":       {"maxmemory": "0", "maxmemory-policy": "noeviction"},
		"none":             {},
	} {
		got, err := redis.StringMap(conn.Do("CONFIG", "GET", pattern))
		if err != nil || len(got) != len(want) {
			t.Errorf("CONFIG GET %s: %v, %v", pattern, got, err)
		}
		for name, value := range want {
			if got[name] != value {
				t.Errorf("CONFIG GET %s: %s: expected %q, found %q", pattern, name, value, got[name])
			}
		}
	}
	if _, err := conn.Do("CONFIG", "SET", "maxmemory", "1"); err == nil {
		t.Error("CONFIG SET: expected an error")
	}
}
