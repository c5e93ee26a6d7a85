package rediscluster

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/godelayed/delayed/internal/fakeredis"
	"github.com/godelayed/delayed/internal/limits"
)

// TestCloseEndsConnections expects that idle connections end with the handle, others when they are given back.
func TestCloseEndsConnections(t *testing.T) {
	a, _ := pair(t, func([]string) string { return "+OK\r\n" }, nil)
	src := open(t, "redis://"+a.Addr())
	idle, used := connTo(t, src, "k"), connTo(t, src, "k")
	idle.Close()
	defer runtime.KeepAlive(src.pools[a.Addr()]) // whose connections end when it is garbage
	src.Close()
	eventually(t, "the idle connection ends", func() bool { return a.Connections() == 1 })
	if reply, err := used.Do("GET", "k"); err != nil || reply != "OK" {
		t.Errorf("GET on a connection that is in use: %v, %v", reply, err)
	}
	used.Close()
	eventually(t, "the connection that was in use ends", func() bool { return a.Connections() == 0 })
}

// TestNodeWithoutSlotsIsLeft expects that no connection stays to a node that has become a replica.
func TestNodeWithoutSlotsIsLeft(t *testing.T) {
	var moved atomic.Bool
	var a, b *fakeredis.Server
	slots := func(args []string) string {
		switch {
		case !isClusterSlots(args):
			return "+OK\r\n"
		case moved.Load():
			return slotsReply("127.0.0.1", b.Port())
		}
		return slotsReply("127.0.0.1", a.Port())
	}
	a, b = startFake(t, slots), startFake(t, slots)
	src := open(t, "redis://"+a.Addr())
	connTo(t, src, "k").Close()
	defer runtime.KeepAlive(src.pools[a.Addr()]) // whose connections end when it is garbage
	moved.Store(true)
	eventually(t, "the connection to the old node ends", func() bool {
		if err := src.layout.refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		return a.Connections() == 0
	})
}

// TestConnectionsAreGivenBack follows a command from one node to another and on to a third.
func TestConnectionsAreGivenBack(t *testing.T) {
	var nodes [3]*fakeredis.Server
	for i := range nodes {
		nodes[i] = startFake(t, func(args []string) string {
			switch {
			case isClusterSlots(args):
				return fakeredis.Array(
					slotsEntry(0, 0, "127.0.0.1", nodes[1].Port()), slotsEntry(1, 1, "127.0.0.1", nodes[2].Port()),
					slotsEntry(2, 16383, "127.0.0.1", nodes[0].Port()))
			case i < len(nodes)-1:
				return fmt.Sprintf("-MOVED %d %s\r\n", slotK, nodes[i+1].Addr())
			}
			return "+OK\r\n"
		})
	}
	src := open(t, "redis://"+nodes[0].Addr())
	c := connTo(t, src, "k")
	if reply, err := c.Do("GET", "k"); err != nil || reply != "OK" {
		t.Fatalf("GET: %v, %v", reply, err)
	}
	c.Close()
	for i, node := range nodes {
		if s := src.pools[node.Addr()].Stats(); s.ActiveCount != 1 || s.IdleCount != 1 {
			t.Errorf("node %d: %d connections, of which %d are idle, expected one that is", i+1, s.ActiveCount,
				s.IdleCount)
		}
	}
}

// TestLateErrorOfAnOldConnection expects that a connection from before a node failed, when it turns out to be broken
// later, does not cost the connections that were made since.
func TestLateErrorOfAnOldConnection(t *testing.T) {
	a, _ := pair(t, func([]string) string { return "+OK\r\n" }, nil)
	src := open(t, "redis://"+a.Addr())
	var old [2]*node
	for i := range old {
		n, err := src.dial(t.Context(), a.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		old[i] = n
	}
	src.suspect(old[0])
	fresh, err := src.dial(t.Context(), a.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	src.suspect(old[1])
	if src.pools[a.Addr()] != fresh.pool || fresh.pool == old[0].pool {
		t.Error("the pool that was made since is given up, and Close would leave its connections open")
	}
}

// TestClosedConnectionsAreForgotten expects that a pool holds nothing of connections that have ended.
func TestClosedConnectionsAreForgotten(t *testing.T) {
	limits.Only(t)
	const n = 300
	a, _ := pair(t, func([]string) string { return "+OK\r\n" }, nil)
	src := open(t, "redis://"+a.Addr())
	connTo(t, src, "k").Close()
	src.pools[a.Addr()].MaxIdle = 0 // it closes what is given back
	objects := func() uint64 {
		eventually(t, "all connections have ended", func() bool { return a.Connections() <= 1 })
		runtime.GC()
		runtime.GC() // after the finalizers
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapObjects
	}
	before := objects()
	for range n {
		c, err := src.Conn(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	if now := objects(); now > before+n {
		t.Errorf("%d connections have left %d objects in memory", n, now-before)
	}
}

// TestAnswersOfANode expects that errors which only nodes of a cluster give do not advise to use this package.
func TestAnswersOfANode(t *testing.T) {
	for _, answer := range []string{"CLUSTERDOWN Hash slot not served", "CROSSSLOT Keys in request"} {
		a, _ := pair(t, func([]string) string { return "-" + answer + "\r\n" }, nil)
		_, err := connTo(t, open(t, "redis://"+a.Addr()), "k").Do("GET", "k")
		if want := "the cluster answers: " + answer; err == nil || err.Error() != want {
			t.Errorf("expected %q, found %v", want, err)
		}
	}
}
