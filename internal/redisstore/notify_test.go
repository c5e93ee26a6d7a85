package redisstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redistest"
)

// TestWait waits for what may come of two queues.
func TestWait(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	conn, other := server.Dial(t), server.Dial(t)
	a, b := NewStore(nil, "", redistest.Name(t)), NewStore(nil, "", redistest.Name(t))
	both := []*Store{a, b}
	on := WaitOn{Tasks: both, Suspects: both[:1], Due: both, Worker: "w"}
	push := func(key string) {
		t.Helper()
		if _, err := other.Do("RPUSH", key, "1"); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what string, want Woken) {
		t.Helper()
		if got, err := Wait(bg, &Link{conn: conn}, on, time.Second); got != want || err != nil {
			t.Errorf("%s: expected %+v at once, found %+v, %v", what, want, got, err)
		}
	}
	// Tasks go before suspects, whatever their queue, and both before what is due.
	push(a.keys.rewait + "w")
	push(b.keys.wake)
	push(a.keys.suspectsNoti)
	push(b.keys.noti)
	push(a.keys.noti)
	expect("tasks of the first", Woken{Store: a})
	expect("tasks of the second", Woken{Store: b})
	expect("suspects", Woken{Store: a, Suspects: true})
	expect("something due", Woken{Store: b, Due: true})
	expect("a wait that another one replaces", Woken{})
	push(b.keys.suspectsNoti) // nobody waits for it
	start := time.Now()
	expect("nothing", Woken{})
	if took := time.Since(start); took < 900*time.Millisecond {
		t.Errorf("expected to wait for a second, found %v", took)
	}
	got := make(chan string, 1)
	go func() {
		woken, err := Wait(bg, &Link{conn: conn}, on, 10*time.Second)
		got <- fmt.Sprint(woken.Store, err)
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
	push(a.keys.noti)
	if woken := <-got; woken != a.String()+" <nil>" {
		t.Errorf("expected to be woken by %s, found %s", a, woken)
	}
}

func rewaitW(s *Store) (any, error) { return nil, s.Rewait(bg, "w", time.Hour) }

var rewaitCases = storeTable{script: "rewait", cases: []storeCase{
	{
		name: "the first",
		do:   rewaitW,
		want: redistest.State{"_rewait:w": redistest.Expiring{Value: ones(1), For: time.Hour}},
	},
	{
		name: "one that nobody has taken",
		seed: redistest.State{"_rewait:w": redistest.Expiring{Value: ones(1), For: time.Second}},
		do:   rewaitW,
		want: redistest.State{"_rewait:w": redistest.Expiring{Value: ones(1), For: time.Hour}},
	},
}}
