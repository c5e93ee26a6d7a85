package rediscluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/fakeredis"
	"github.com/godelayed/delayed/internal/limits"
)

func TestComplete(t *testing.T) {
	for _, test := range []struct{ addr, asked, want string }{
		{"a:1", "b:2", "a:1"},
		{":1", "b:2", "b:1"},
		{"?:1", "[::1]:2", "[::1]:1"},
		{"::1:7000", "b:2", "[::1]:7000"},
		{"[fe80::1]:7000", "b:2", "[fe80::1]:7000"},
		{"nonsense", "b:2", "nonsense"},
	} {
		if got := complete(test.addr, test.asked); got != test.want {
			t.Errorf("complete(%q, %q): expected %q, found %q", test.addr, test.asked, test.want, got)
		}
	}
}

// TestAllNodesHaveNewAddresses is what happens when every container of a cluster is replaced: only the names of the URL
// lead back.
func TestAllNodesHaveNewAddresses(t *testing.T) {
	gone := startFake(t, func([]string) string { return "+old\r\n" })
	var replaced atomic.Bool
	var home *fakeredis.Server
	home = startFake(t, func(args []string) string {
		if !isClusterSlots(args) {
			return "+new\r\n"
		}
		if !replaced.Load() {
			return slotsReply("127.0.0.1", gone.Port())
		}
		return slotsReply("127.0.0.1", home.Port())
	})
	src := open(t, "redis://"+home.Addr())
	if reply, err := connTo(t, src, "k").Do("GET", "k"); err != nil || reply != "old" {
		t.Fatalf("GET: %v, %v", reply, err)
	}
	replaced.Store(true)
	gone.Close()
	eventually(t, "the new node is found", func() bool {
		c, err := src.Conn(t.Context(), "k")
		if err != nil {
			return false
		}
		defer c.Close()
		reply, err := c.Do("GET", "k")
		return err == nil && reply == "new"
	})
	src.mu.Lock()
	defer src.mu.Unlock()
	if len(src.pools) != 1 || src.pools[home.Addr()] == nil {
		t.Errorf("expected a pool for the new node only, found %v", src.pools)
	}
}

func TestManyAskOnce(t *testing.T) {
	release := make(chan struct{})
	var a *fakeredis.Server
	a = startFake(t, func(args []string) string {
		if isClusterSlots(args) {
			<-release
			return slotsReply("127.0.0.1", a.Port())
		}
		return "+OK\r\n"
	})
	src := open(t, "redis://"+a.Addr())
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			c, err := src.Conn(t.Context(), "k")
			if err != nil {
				t.Errorf("Conn: %v", err)
				return
			}
			c.Close()
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := src.Conn(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Conn whose context ends: %v", err)
	}
	close(release)
	wg.Wait()
	src.layout.refreshSoon() // has just been done
	if got := a.Names(); got != "CLUSTER" {
		t.Errorf("the node saw %q, expected one question", got)
	}
}

// TestDeadNetworkDoesNotStall has a node that accepts connections and never answers.
func TestDeadNetworkDoesNotStall(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	silent := startFake(t, func([]string) string { <-release; return "" })
	defer close(release)
	var good *fakeredis.Server
	good = startFake(t, func([]string) string { return slotsReply("127.0.0.1", good.Port()) })
	for range 3 { // the order is random
		src := open(t, fmt.Sprintf("redis://%s,%s", silent.Addr(), good.Addr()))
		start := time.Now()
		connTo(t, src, "k")
		if took := time.Since(start); took > askTimeout+3*time.Second {
			limits.Errorf(t, "took %v beside a silent node", took)
		}
	}
}

func TestErrorsOfAsking(t *testing.T) {
	gone := startFake(t, nil)
	gone.Close()
	single := startFake(t, func([]string) string { return "-ERR This instance has cluster support disabled\r\n" })
	empty := startFake(t, func([]string) string { return "*0\r\n" })
	half := startFake(t, func(args []string) string {
		return strings.Replace(slotsReply("127.0.0.1", "1"), ":16383", ":0", 1)
	})
	for _, test := range []struct {
		hosts string
		want  []string
	}{
		{gone.Addr(), []string{gone.Addr(), "refused"}},
		{single.Addr(), []string{"single server", "delayed.Dial"}},
		{empty.Addr(), []string{"not yet, part of a cluster"}},
		{half.Addr(), []string{"no node of the cluster serves slot", "CLUSTER ADDSLOTS"}},
		{gone.Addr() + "," + single.Addr(), []string{gone.Addr(), single.Addr()}},
	} {
		src := open(t, "redis://user:hunter2@"+test.hosts)
		_, err := src.Conn(t.Context(), "k")
		if err == nil {
			t.Errorf("%s: expected an error", test.hosts)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: expected an error with %q, found: %v", test.hosts, want, err)
			}
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}

func TestClose(t *testing.T) {
	release := make(chan struct{})
	silent := startFake(t, func([]string) string { <-release; return "" })
	defer close(release)
	src := open(t, "redis://"+silent.Addr())
	waiting := make(chan error, 1)
	go func() {
		_, err := src.Conn(t.Context(), "k")
		waiting <- err
	}()
	eventually(t, "the node is asked", func() bool { return silent.Names() != "" })
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
	src.layout.refreshSoon()
	if err := src.Close(); err != nil {
		t.Errorf("Close again: %v", err)
	}
}
