package rueidis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"

	"github.com/godelayed/delayed/internal/clientconn"
)

// askPause is the least time between two questions for the layout of the cluster.
const askPause = 500 * time.Millisecond

// cluster is a client of a cluster. rueidis does not report which node has a key, so cluster keeps a layout of its own.
type cluster struct {
	client rueidis.Client

	mu    sync.Mutex // protects the following, and is held while the cluster is asked
	addrs map[int]string
	nodes map[string]*node
	stale bool
	asked time.Time
}

func newCluster(client rueidis.Client) *cluster { return &cluster{client: client, stale: true} }

// Node implements clientconn.Client.
func (c *cluster) Node(ctx context.Context, key string) (clientconn.Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.addrs == nil || c.stale && time.Since(c.asked) > askPause {
		if err := c.ask(ctx); err != nil && c.addrs == nil {
			return nil, err
		}
	}
	addr := c.addrs[clientconn.Slot(key)]
	if addr == "" {
		c.stale = true
		return nil, fmt.Errorf("no node of the cluster serves slot %d", clientconn.Slot(key))
	}
	return c.at(key, addr), nil
}

// ask asks the cluster for its layout. c.mu is held.
func (c *cluster) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, takeTimeout)
	defer cancel()
	c.asked = time.Now()
	reply, err := value(c.client.Do(ctx, c.client.B().ClusterSlots().Build()))
	ranges, err := redis.Values(reply, err)
	if err != nil {
		return fmt.Errorf("CLUSTER SLOTS: %w", err)
	}
	addrs := map[int]string{}
	for _, r := range ranges {
		var first, last int
		var master []any
		if r, err := redis.Values(r, nil); err != nil {
			return fmt.Errorf("CLUSTER SLOTS: %w", err)
		} else if _, err := redis.Scan(r, &first, &last, &master); err != nil || len(master) < 2 {
			return fmt.Errorf("CLUSTER SLOTS: unexpected reply: %w", errors.Join(err))
		}
		host, _ := redis.String(master[0], nil)
		port, _ := redis.Int(master[1], nil)
		for slot := first; slot <= last; slot++ {
			addrs[slot] = net.JoinHostPort(host, strconv.Itoa(port))
		}
	}
	c.addrs, c.nodes, c.stale = addrs, map[string]*node{}, false
	return nil
}

// at returns the node at addr. c.mu is held.
func (c *cluster) at(key, addr string) clientconn.Node {
	if n := c.nodes[addr]; n != nil {
		return n
	}
	client, ok := c.client.Nodes()[addr]
	if !ok {
		return &unknown{c, key, addr}
	}
	n := newNode(addr, client)
	n.failed = c.doubt
	c.nodes[addr] = n
	return n
}

// doubt lets the next call ask for the layout.
func (c *cluster) doubt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale = true
}

// NodeAt implements clientconn.Client.
func (c *cluster) NodeAt(_ context.Context, key, addr string) (clientconn.Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at(key, addr), nil
}

// Moved implements clientconn.Client.
func (c *cluster) Moved(_ context.Context, key, addr string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale = c.stale || c.addrs[clientconn.Slot(key)] != addr
	if c.addrs != nil {
		c.addrs[clientconn.Slot(key)] = addr
	}
}

// Cluster implements clientconn.Client.
func (c *cluster) Cluster() bool { return true }

// unknown is a node that the client does not know yet, as it has just joined or serves its first slot. The client sends
// commands there when another node names it.
type unknown struct {
	cluster *cluster
	key     string
	addr    string
}

// Addr implements clientconn.Node.
func (n *unknown) Addr() string { return n.addr }

// Take implements clientconn.Node.
func (n *unknown) Take(context.Context) (clientconn.Wire, error) { return n, nil }

// Wait implements clientconn.Node.
func (n *unknown) Wait(context.Context) (clientconn.Wire, error) { return n, nil }

// Subscribe implements clientconn.Node.
func (n *unknown) Subscribe(context.Context) (clientconn.Subscription, error) {
	return nil, fmt.Errorf("the client does not know the node %s of the cluster yet", n.addr)
}

// Do implements clientconn.Wire.
func (n *unknown) Do(ctx context.Context, limit time.Duration, cmds []clientconn.Command) ([]any, error) {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	replies := make([]any, len(cmds))
	for i, cmd := range cmds {
		sent, ok := n.build(cmd)
		switch {
		case cmd.Name == "ASKING": // the client does that
			continue
		case !ok:
			replies[i] = redis.Error("ERR " + cmd.Name + " cannot be sent to a node that the client does not know yet")
			continue
		}
		var err error
		if replies[i], err = value(n.cluster.client.Do(ctx, sent)); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

// build makes a command that goes to the slot of the key. It reports whether there is a key.
func (n *unknown) build(cmd clientconn.Command) (rueidis.Completed, bool) {
	args := texts(cmd.Args)
	first := 0
	if cmd.Name == "EVAL" || cmd.Name == "EVALSHA" {
		first = 2
	}
	if len(args) <= first || clientconn.Slot(args[first]) != clientconn.Slot(n.key) {
		return rueidis.Completed{}, false
	}
	b := n.cluster.client.B().Arbitrary(cmd.Name).Args(args[:first]...).Keys(args[first]).Args(args[first+1:]...)
	if cmd.Name == "BLPOP" {
		return b.Blocking(), true
	}
	return b.Build(), true
}

// Release does nothing: no connection is taken.
func (n *unknown) Release() {}

// Discard does nothing: no connection is taken.
func (n *unknown) Discard() {}
