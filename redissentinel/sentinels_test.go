package redissentinel

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/fakeredis"
	"github.com/godelayed/delayed/internal/limits"
)

// TestEverySentinelIsAsked has a single one that knows the master, in each place of the list.
func TestEverySentinelIsAsked(t *testing.T) {
	master := startMaster(t, "+OK\r\n")
	good := startSentinel(t, master.Port)
	gone := startSentinel(t, master.Port)
	gone.Close()
	ignorant := startSentinel(t, func() string { return "" })
	for _, list := range [][]string{
		{good.Addr(), gone.Addr(), ignorant.Addr()},
		{gone.Addr(), good.Addr(), ignorant.Addr()},
		{gone.Addr(), ignorant.Addr(), good.Addr()},
		{ignorant.Addr(), good.Addr()},
	} {
		src := open(t, "redis://"+strings.Join(list, ",")+"?master=m")
		if reply, err := connTo(t, src).Do("PING"); err != nil || reply != "OK" {
			t.Errorf("%v: PING: %v, %v", list, reply, err)
		}
		if got := src.sentinels.addrs[0]; got != good.Addr() || len(src.sentinels.addrs) != len(list) {
			t.Errorf("the next question goes to %s first, of %v; expected %s", got, src.sentinels.addrs, good.Addr())
		}
	}
}

func TestErrorsOfDiscovery(t *testing.T) {
	master := startMaster(t, "+OK\r\n")
	good := startSentinel(t, master.Port)
	gone := startSentinel(t, master.Port)
	gone.Close()
	refusing := startFake(t, func([]string) string { return "-NOAUTH Authentication required.\r\n" })
	toNowhere := startSentinel(t, gone.Port)
	replica := startFake(t, func(args []string) string { return roleReply("slave") })
	toReplica := startSentinel(t, replica.Port)
	silent := startFake(t, func(args []string) string {
		if args[0] == "ROLE" {
			return "-NOAUTH Authentication required.\r\n"
		}
		return "+OK\r\n"
	})
	toSilent := startSentinel(t, silent.Port)
	for _, test := range []struct {
		hosts, name string
		want        []string
	}{
		{gone.Addr(), "m", []string{"no Sentinel names the master m", gone.Addr(), "refused"}},
		{
			good.Addr() + "," + gone.Addr(), "other",
			[]string{"master other", good.Addr() + ": it knows no such master", gone.Addr(), "SENTINEL MASTERS"},
		},
		{refusing.Addr(), "m", []string{"NOAUTH"}},
		{toNowhere.Addr(), "m", []string{"master m at " + gone.Addr(), "refused"}},
		{toReplica.Addr(), "m", []string{"master m at " + replica.Addr(), "replica now"}},
		{toSilent.Addr(), "m", []string{"master m at " + silent.Addr(), "ROLE", "NOAUTH"}},
	} {
		src := open(t, "redis://:hunter2@"+test.hosts+"?sentinel_password=hunter3&master="+test.name)
		_, err := src.Conn(t.Context(), "k")
		if err == nil {
			t.Errorf("%s: expected an error", test.want[0])
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("expected an error with %q, found: %v", want, err)
			}
		}
		if strings.Contains(err.Error(), "hunter") {
			t.Errorf("the error shows a password: %v", err)
		}
	}
}

// TestStaleSentinel has a first Sentinel that still names a server that has become a replica.
func TestStaleSentinel(t *testing.T) {
	replica := startFake(t, func([]string) string { return roleReply("slave") })
	master := startMaster(t, "+OK\r\n")
	stale, good := startSentinel(t, replica.Port), startSentinel(t, master.Port)
	src := open(t, "redis://"+stale.Addr()+","+good.Addr()+"?master=m")
	if _, err := src.Conn(t.Context(), "k"); err == nil {
		t.Error("expected that a replica is refused")
	}
	if reply, err := connTo(t, src).Do("PING"); err != nil || reply != "OK" {
		t.Errorf("the second try: %v, %v", reply, err)
	}
	if strings.Contains(replica.Names(), "PING") {
		t.Error("a command went to the replica")
	}
}

// TestSentinelNamesALostMaster has a first Sentinel that still names a master which is gone.
func TestSentinelNamesALostMaster(t *testing.T) {
	old, successor := startMaster(t, "+old\r\n"), startMaster(t, "+new\r\n")
	var over atomic.Bool
	stale := startSentinel(t, old.Port)
	good := startSentinel(t, func() string {
		if over.Load() {
			return successor.Port()
		}
		return old.Port()
	})
	src := openDeaf(t, "redis://"+stale.Addr()+","+good.Addr()+"?master=m")
	if reply, err := connTo(t, src).Do("PING"); err != nil || reply != "old" {
		t.Fatalf("PING: %v, %v", reply, err)
	}
	over.Store(true)
	old.Close()
	if _, err := src.Conn(t.Context(), "k"); err == nil {
		t.Error("expected an error: the first Sentinel names the master that is gone")
	}
	if reply, err := connTo(t, src).Do("PING"); err != nil || reply != "new" {
		t.Errorf("the second try: %v, %v", reply, err)
	}
}

func TestManyAskOnce(t *testing.T) {
	release := make(chan struct{})
	master := startMaster(t, "+OK\r\n")
	s := startSentinel(t, func() string { <-release; return master.Port() })
	src := openDeaf(t, "redis://"+s.Addr()+"?master=m")
	var wg sync.WaitGroup
	var started atomic.Int32
	for range 20 {
		wg.Go(func() {
			started.Add(1)
			if addr, err := src.sentinels.master(t.Context()); err != nil || addr != master.Addr() {
				t.Errorf("%s, %v", addr, err)
			}
		})
	}
	eventually(t, "all have started", func() bool { return started.Load() == 20 })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := src.Conn(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Conn whose context ends: %v", err)
	}
	close(release)
	wg.Wait()
	if got := len(s.Seen()); got > 2 {
		t.Errorf("%d questions, expected that 20 who ask together cause one", got)
	}
}

// TestSilentSentinel has one that accepts connections and never answers.
func TestSilentSentinel(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	silent := startFake(t, func([]string) string { <-release; return "" })
	defer close(release)
	master := startMaster(t, "+OK\r\n")
	good := startSentinel(t, master.Port)
	src := open(t, "redis://"+silent.Addr()+","+good.Addr()+"?master=m")
	start := time.Now()
	connTo(t, src)
	if took := time.Since(start); took > askTimeout+3*time.Second {
		limits.Errorf(t, "took %v beside a silent Sentinel", took)
	}
}

func TestClose(t *testing.T) {
	release := make(chan struct{})
	silent := startFake(t, func([]string) string { <-release; return "" })
	defer close(release)
	src := open(t, "redis://"+silent.Addr()+"?master=m")
	waiting := make(chan error, 1)
	go func() {
		_, err := src.Conn(t.Context(), "k")
		waiting <- err
	}()
	eventually(t, "the Sentinel is asked", func() bool { return silent.Names() != "" })
	start := time.Now()
	if err := src.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if took := time.Since(start); took > askTimeout/2 {
		limits.Errorf(t, "Close took %v: expected that it ends a question that is not answered", took)
	}
	if err := receive(t, "the end of Conn", waiting); !errors.Is(err, delayed.ErrClosed) {
		t.Errorf("Conn during Close: %v", err)
	}
	if _, err := src.Conn(t.Context(), "k"); !errors.Is(err, delayed.ErrClosed) {
		t.Errorf("Conn after Close: %v", err)
	}
	if err := src.Close(); err != nil {
		t.Errorf("Close again: %v", err)
	}
}

func TestCredentials(t *testing.T) {
	master := startMaster(t, "+OK\r\n")
	s := startFake(t, func(args []string) string {
		if args[0] == "AUTH" {
			return "+OK\r\n"
		}
		return fakeredis.Array(fakeredis.Bulk("127.0.0.1"), fakeredis.Bulk(master.Port()))
	})
	src := openDeaf(t, "redis://user:p%40ss@"+s.Addr()+"/7?master=m&sentinel_user=su&sentinel_password=s%20p")
	if reply, err := redis.String(connTo(t, src).Do("GET", "k")); err != nil || reply != "OK" {
		t.Fatalf("GET: %v, %v", reply, err)
	}
	commands := func(seen [][]string) (all []string) {
		for _, args := range seen {
			all = append(all, strings.Join(args, " "))
		}
		return all
	}
	if got, want := strings.Join(commands(s.Seen()), "; "),
		"AUTH su s p; SENTINEL get-master-addr-by-name m"; got != want {
		t.Errorf("the Sentinel saw %q, expected %q", got, want)
	}
	if got, want := strings.Join(commands(master.Seen()), "; "), "AUTH user p@ss; SELECT 7; ROLE; GET k"; got != want {
		t.Errorf("the master saw %q, expected %q", got, want)
	}
}
