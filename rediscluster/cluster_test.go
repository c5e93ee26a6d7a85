//go:build unix

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

	"github.com/gomodule/redigo/redis"
	"github.com/mna/redisc"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/redistest/controltest"
)

// add is a script with two keys, as those of a queue have several.
const add = `redis.call('RPUSH', KEYS[2], ARGV[1]) return redis.call('INCR', KEYS[1])`

func runAdd(ctx context.Context, c redis.Conn, tag string, n int) error {
	_, err := redis.DoContext(c, ctx, "EVAL", add, 2, "{"+tag+"}:n", "{"+tag+"}:list", n)
	return err
}

// move hands a slot from one node of a cluster to another.
type move struct {
	cluster  *redistest.Cluster
	from, to *redistest.Server
	slot     int
}

// newMove prepares to move the slot of key to the next node.
func newMove(t *testing.T, cluster *redistest.Cluster, key string) *move {
	t.Helper()
	m := &move{cluster: cluster, from: cluster.NodeOf(t, key), slot: redisc.Slot(key)}
	for i, node := range cluster.Nodes {
		if node == m.from {
			m.to = cluster.Nodes[(i+1)%len(cluster.Nodes)]
		}
	}
	return m
}

func id(t *testing.T, node *redistest.Server) string {
	t.Helper()
	id, err := redis.String(node.Do(t, "CLUSTER", "MYID"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// begin puts the slot between the two nodes.
func (m *move) begin(t *testing.T) {
	t.Helper()
	m.to.Do(t, "CLUSTER", "SETSLOT", m.slot, "IMPORTING", id(t, m.from))
	m.from.Do(t, "CLUSTER", "SETSLOT", m.slot, "MIGRATING", id(t, m.to))
}

// keys moves what is in the slot.
func (m *move) keys(t *testing.T) {
	t.Helper()
	keys, err := redis.Strings(m.from.Do(t, "CLUSTER", "GETKEYSINSLOT", m.slot, 1000), nil)
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(m.to.Addr(), ":")
	for _, key := range keys {
		m.from.Do(t, "MIGRATE", host, port, key, 0, 5000)
	}
}

// end makes the new owner known, in the order that Redis's documentation gives.
func (m *move) end(t *testing.T) {
	t.Helper()
	owner := id(t, m.to)
	m.to.Do(t, "CLUSTER", "SETSLOT", m.slot, "NODE", owner)
	m.from.Do(t, "CLUSTER", "SETSLOT", m.slot, "NODE", owner)
	for _, node := range m.cluster.Nodes {
		node.Do(t, "CLUSTER", "SETSLOT", m.slot, "NODE", owner)
	}
	// The new owner has raised its epoch. Were the slot moved on before the others have heard of it, the next owner
	// could choose the same epoch, and the cluster would settle that by taking the slot away again.
	want := epoch(t, m.to, owner)
	eventually(t, "all nodes know the new owner's epoch", func() bool {
		for _, node := range m.cluster.Nodes {
			if epoch(t, node, owner) != want {
				return false
			}
		}
		return true
	})
}

// epoch returns the configuration epoch of the node id as node knows it.
func epoch(t *testing.T, node *redistest.Server, id string) string {
	t.Helper()
	nodes, err := redis.String(node.Do(t, "CLUSTER", "NODES"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(nodes) {
		// id, address, flags, master, ping sent, pong received, epoch, link state, slots
		if fields := strings.Fields(line); len(fields) > 6 && fields[0] == id {
			return fields[6]
		}
	}
	t.Fatalf("node %s does not know node %s", node.Addr(), id)
	return ""
}

func (m *move) all(t *testing.T) {
	t.Helper()
	m.begin(t)
	m.keys(t)
	m.end(t)
}

func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	t.Run("Handle", func(t *testing.T) { testHandle(t, cluster) })
	t.Run("EachKeyHasItsNode", func(t *testing.T) { testEachKey(t, cluster) })
	t.Run("KeyByKeyThroughAMove", func(t *testing.T) { testPartlyMoved(t, cluster) })
	t.Run("Pipeline", func(t *testing.T) { testPipelineMoves(t, cluster) })
	t.Run("BlockedWhileTheSlotMoves", func(t *testing.T) { testBlocked(t, cluster) })
	t.Run("ContextEndsBlocking", func(t *testing.T) { testContext(t, cluster) })
	t.Run("LoadDuringMoves", func(t *testing.T) { testLoad(t, cluster) })
	t.Run("Control", func(t *testing.T) {
		rdb, err := Dial(cluster.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer rdb.Close()
		controltest.Run(t, rdb, "{control}")
	})
	t.Run("Producers", func(t *testing.T) { testProducers(t, cluster) })
	t.Run("Worker", func(t *testing.T) { testWorker(t, cluster) })
	t.Run("RestartOfANode", func(t *testing.T) { testRestart(t, cluster) })
}

func testHandle(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	rdb, err := Dial(cluster.URL())
	if err != nil {
		t.Fatal(err)
	}
	if err := rdb.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
	if err := rdb.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := rdb.Ping(t.Context()); !errors.Is(err, delayed.ErrClosed) {
		t.Errorf("Ping after Close: %v", err)
	}
}

func testEachKey(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	src := open(t, "redis://"+cluster.Nodes[1].Addr()) // the others are learnt
	nodes := map[string]bool{}
	for i := range 50 {
		key := fmt.Sprintf("k%d", i)
		c := connTo(t, src, key)
		if _, err := c.Do("SET", key, i); err != nil {
			t.Errorf("SET %s: %v", key, err)
		}
		// Commands without a key go to the same node: a sweeper asks it for its run_id.
		info, err := redis.String(c.Do("INFO", "server"))
		want := fmt.Sprintf("tcp_port:%s\r\n", strings.TrimPrefix(cluster.NodeOf(t, key).Addr(), "127.0.0.1:"))
		if err != nil || !strings.Contains(info, want) {
			t.Errorf("key %s: expected the node with %s, %v", key, strings.TrimSpace(want), err)
		}
		if got, err := redis.Int(cluster.NodeOf(t, key).Do(t, "CLUSTER", "KEYSLOT", key), nil); err != nil ||
			got != src.Slot(key) {
			t.Errorf("Slot(%s): expected %d, found %d", key, got, src.Slot(key))
		}
		nodes[want] = true
	}
	if len(nodes) != 3 {
		t.Errorf("50 keys are on %d nodes, expected 3", len(nodes))
	}
	if src.Slot("{a}x") != src.Slot("{a}y") || src.Slot("{a}x") == src.Slot("{b}x") {
		t.Error("Slot does not respect hash tags")
	}
}

// testPartlyMoved walks through a move step by step: of two keys, one is on either side.
func testPartlyMoved(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	tag := "partly"
	src := open(t, cluster.URL())
	c := connTo(t, src, "{"+tag+"}")
	do := func(cmd string, args ...any) any {
		t.Helper()
		reply, err := c.Do(cmd, args...)
		if err != nil {
			t.Fatalf("%s: %v", cmd, err)
		}
		return reply
	}
	do("SET", "{partly}old", "1")
	m := newMove(t, cluster, "{"+tag+"}")
	m.begin(t)
	do("INCR", "{partly}new") // created on the node that imports
	do("INCR", "{partly}new")
	do("INCR", "{partly}old")
	if got, err := redis.Int(do("GET", "{partly}new"), nil); err != nil || got != 2 {
		t.Errorf("GET of the key that has moved: %d, %v", got, err)
	}
	if got := m.from.Do(t, "EXISTS", "{partly}old"); got != int64(1) {
		t.Errorf("the key that has not moved: %v", got)
	}
	// A command with keys on both sides waits until the move is over.
	result := make(chan error, 1)
	go func() {
		_, err := c.Do("EVAL", "return redis.call('INCR', KEYS[1]) + redis.call('INCR', KEYS[2])", 2, "{partly}old",
			"{partly}new")
		result <- err
	}()
	// Up to 6.2, the old node redirects such a command, and the new one refuses it.
	eventually(t, "the script is refused", func() bool {
		return refusedParts(t, m.from) || refusedParts(t, m.to)
	})
	select {
	case err := <-result:
		t.Fatalf("the script ended during the move: %v", err)
	default:
	}
	m.keys(t)
	m.end(t)
	if err := receive(t, "the end of the script", result); err != nil {
		t.Errorf("the script after the move: %v", err)
	}
	if got, err := redis.Strings(c.Do("MGET", "{partly}old", "{partly}new")); err != nil || got[0] != "3" ||
		got[1] != "3" {
		t.Errorf("after the move: expected [3 3], found %v, %v", got, err)
	}
	// The connection has moved along: nothing is redirected any more.
	stats := m.to.CommandStats(t)
	do("GET", "{partly}old")
	if n := m.to.CommandStats(t).Since(stats)["get"]; n != 1 {
		t.Errorf("GET reached the new node %d times, expected once", n)
	}
}

// refusedParts reports whether a node has refused a command because it had only some of the keys.
func refusedParts(t *testing.T, node *redistest.Server) bool {
	t.Helper()
	info, err := redis.String(node.Do(t, "INFO", "errorstats"), nil)
	return err == nil && strings.Contains(info, "errorstat_TRYAGAIN")
}

func testPipelineMoves(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	src := open(t, cluster.URL())
	c := connTo(t, src, "{pipe}")
	if _, err := c.Do("SET", "{pipe}n", 0); err != nil {
		t.Fatal(err)
	}
	newMove(t, cluster, "{pipe}").all(t)
	for range 10 {
		if err := c.Send("INCR", "{pipe}n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	for want := range 10 {
		if got, err := redis.Int(c.Receive()); err != nil || got != want+1 {
			t.Errorf("reply %d: %d, %v", want+1, got, err)
		}
	}
}

// testBlocked moves the slot of lists that clients wait for, in each way to wait: they must get what is pushed on the
// new node.
func testBlocked(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
	defer cancel()
	for name, block := range map[string]func(c redis.Conn) (any, error){
		"DoWithTimeout": func(c redis.Conn) (any, error) {
			return redis.DoWithTimeout(c, 0, "BLPOP", "{blocked}a", "{blocked}b", 0)
		},
		"DoContext": func(c redis.Conn) (any, error) {
			return redis.DoContext(c, ctx, "BLPOP", "{blocked}a", "{blocked}b", 0)
		},
		"ReceiveContext": func(c redis.Conn) (any, error) {
			if err := c.Send("BLPOP", "{blocked}a", "{blocked}b", 0); err != nil {
				return nil, err
			}
			if err := c.Flush(); err != nil {
				return nil, err
			}
			return redis.ReceiveContext(c, ctx)
		},
	} {
		// Each time the slot goes back and forth, the clients wait on the node that has it.
		m := currentOwner(t, cluster, "{blocked}")
		src := open(t, cluster.URL())
		c := connTo(t, src, "{blocked}")
		result := make(chan error, 1)
		go func() {
			got, err := redis.Strings(block(c))
			if err == nil && (len(got) != 2 || got[0] != "{blocked}b" || got[1] != "x") {
				err = fmt.Errorf("expected [{blocked}b x], found %v", got)
			}
			result <- err
		}()
		eventually(t, "the client blocks", func() bool {
			info, err := redis.String(m.from.Do(t, "INFO", "clients"), nil)
			return err == nil && strings.Contains(info, "blocked_clients:1\r\n")
		})
		m.all(t)
		m.to.Do(t, "RPUSH", "{blocked}b", "x")
		if err := receive(t, "the end of "+name, result); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// currentOwner prepares to move the slot of key away from whichever node has it now.
func currentOwner(t *testing.T, cluster *redistest.Cluster, key string) *move {
	t.Helper()
	m := newMove(t, cluster, key)
	var answer redis.Error
	if _, err := m.from.Dial(t).Do("EXISTS", key); errors.As(err, &answer) &&
		strings.HasPrefix(string(answer), "MOVED") {
		m.from, m.to = m.to, m.from
	}
	return m
}

func testContext(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	src := open(t, cluster.URL())
	c := connTo(t, src, "{ctx}")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	start := time.Now()
	if _, err := redis.DoContext(c, ctx, "BLPOP", "{ctx}", 0); !errors.Is(err, context.Canceled) {
		t.Errorf("expected %v, found %v", context.Canceled, err)
	}
	if took := time.Since(start); took > 10*time.Second {
		limits.Errorf(t, "took %v", took)
	}
	if c.Err() == nil {
		t.Error("the connection passes for good although a reply may still come")
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// Longer than an ordinary command may take: the context decides.
	if reply, err := redis.DoContext(connTo(t, src, "{ctx}"), ctx, "BLPOP", "{ctx}", "0.05"); err != nil ||
		reply != nil {
		t.Errorf("BLPOP: %v, %v", reply, err)
	}
}

// testLoad runs scripts while their slots travel, and counts: none may be refused, lost or carried out twice.
func testLoad(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	const workers, moves = 8, 6
	tags := []string{"load-a", "load-b"}
	src := open(t, cluster.URL())
	var stop atomic.Bool
	var done [2]atomic.Int64
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			tag := i % len(tags)
			for n := 0; !stop.Load(); n++ {
				ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
				c, err := src.Conn(ctx, "{"+tags[tag]+"}")
				if err == nil {
					err = runAdd(ctx, c, tags[tag], n)
					c.Close()
				}
				cancel()
				if err != nil {
					t.Errorf("script: %v", err)
					return
				}
				done[tag].Add(1)
			}
		})
	}
	progress := func() {
		before := done[0].Load() + done[1].Load()
		eventually(t, "scripts run", func() bool { return done[0].Load()+done[1].Load() > before+50 || t.Failed() })
	}
	for range moves {
		for _, tag := range tags {
			progress()
			currentOwner(t, cluster, "{"+tag+"}").all(t)
		}
	}
	progress()
	stop.Store(true)
	wg.Wait()
	for i, tag := range tags {
		c := connTo(t, src, "{"+tag+"}")
		n, err := redis.Int64(c.Do("GET", "{"+tag+"}:n"))
		length, err2 := redis.Int64(c.Do("LLEN", "{"+tag+"}:list"))
		if want := done[i].Load(); err != nil || err2 != nil || n != want || length != want {
			t.Errorf("%s: %d scripts were answered, %d and %d carried out (%v, %v)", tag, want, n, length, err, err2)
		}
	}
}

// testRestart stops a node and starts it again: the others serve on, and commands for the node work when it is back.
func testRestart(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	src := open(t, cluster.URL())
	down := cluster.Nodes[2]
	var there, elsewhere string
	for i := 0; there == "" || elsewhere == ""; i++ {
		if key := fmt.Sprintf("restart%d", i); cluster.NodeOf(t, key) == down {
			there = key
		} else {
			elsewhere = key
		}
	}
	set := func(key string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		c, err := src.Conn(ctx, key)
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Do("SET", key, "v")
		return err
	}
	if err := errors.Join(set(there), set(elsewhere)); err != nil {
		t.Fatal(err)
	}
	down.Stop(t)
	if err := set(there); err == nil {
		t.Error("a key of the node that is down: expected an error")
	}
	if err := set(elsewhere); err != nil {
		t.Errorf("a key of another node: %v", err)
	}
	down.Restart(t)
	eventually(t, "the key of the restarted node can be written", func() bool { return set(there) == nil })
}

// replicaOf starts a replica of a node of a cluster, and returns when the replica is in step with it and all nodes know
// the replica: nobody could introduce them once the master is away.
func replicaOf(t *testing.T, cluster *redistest.Cluster, master *redistest.Server) *redistest.Server {
	t.Helper()
	replica := redistest.Start(t, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
		"--cluster-node-timeout", "10000")
	for _, node := range cluster.Nodes {
		host, port, _ := strings.Cut(node.Addr(), ":")
		replica.Do(t, "CLUSTER", "MEET", host, port)
	}
	eventually(t, "the replica knows its master", func() bool {
		conn, err := redis.Dial("tcp", replica.Addr())
		if err != nil {
			return false
		}
		defer conn.Close()
		_, err = conn.Do("CLUSTER", "REPLICATE", id(t, master))
		return err == nil
	})
	eventually(t, "all know each other", func() bool {
		for _, node := range append([]*redistest.Server{replica}, cluster.Nodes...) {
			nodes, err := redis.String(node.Do(t, "CLUSTER", "NODES"), nil)
			if err != nil || strings.Count(nodes, " connected") != len(cluster.Nodes)+1 ||
				strings.Contains(nodes, "handshake") {
				return false
			}
		}
		return true
	})
	eventually(t, "the replica is in step", func() bool {
		info, err := redis.String(replica.Do(t, "INFO", "replication"), nil)
		return err == nil && strings.Contains(info, "master_link_status:up")
	})
	return replica
}
