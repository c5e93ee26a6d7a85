package redisstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redistest"
)

// TestWait waits for the first of several queues that has a notification.
func TestWait(t *testing.T) {
	server := redistest.Shared(t)
	conn, other := server.Dial(t), server.Dial(t)
	a, b := redistest.Name(t), redistest.Name(t)
	push := func(key string) {
		t.Helper()
		if _, err := other.Do("RPUSH", key, "1"); err != nil {
			t.Fatal(err)
		}
	}
	push(b)
	if key, err := Wait(bg, &Link{conn: conn}, []string{a, b}, time.Second); key != b || err != nil {
		t.Errorf("expected %s at once, found %q, %v", b, key, err)
	}
	start := time.Now()
	if key, err := Wait(bg, &Link{conn: conn}, []string{a, b}, time.Second); key != "" || err != nil {
		t.Errorf("nothing came: expected no key and no error, found %q, %v", key, err)
	}
	if took := time.Since(start); took < 900*time.Millisecond {
		t.Errorf("expected to wait for a second, found %v", took)
	}
	got := make(chan string, 1)
	go func() {
		key, err := Wait(bg, &Link{conn: conn}, []string{a, b}, 10*time.Second)
		got <- fmt.Sprint(key, err)
	}()
	for {
		blocked, err := redis.String(other.Do("INFO", "clients"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(blocked, "blocked_clients:0") {
			break
		}
	}
	push(a)
	if key := <-got; key != a+"<nil>" {
		t.Errorf("expected to be woken by %s, found %s", a, key)
	}
}
