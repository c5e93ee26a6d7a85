package redistest

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	clusterNodes = 3
	clusterSlots = 16384
	clusterLimit = 60 * time.Second
)

// Cluster is a cluster of three masters without replicas, each with a third of the slots.
type Cluster struct {
	Nodes []*Server
}

// StartCluster starts a cluster that ends with the test, and returns when all nodes agree on it. args go to every node,
// see Start.
func StartCluster(t testing.TB, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{}
	for range clusterNodes {
		c.Nodes = append(c.Nodes, Start(t, append([]string{
			"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
			// A node that a busy machine stalls for a moment must not be declared dead.
			"--cluster-node-timeout", "10000",
			// A master sends its data to a replica at once.
			"--repl-diskless-sync-delay", "0",
		}, args...)...))
	}
	for i, node := range c.Nodes {
		// Each node gets an epoch of its own before they meet, or they would have to settle that among themselves.
		node.Do(t, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
		slots := []any{"ADDSLOTS"}
		for slot := i * clusterSlots / clusterNodes; slot < (i+1)*clusterSlots/clusterNodes; slot++ {
			slots = append(slots, slot)
		}
		node.Do(t, "CLUSTER", slots...)
	}
	for i, node := range c.Nodes {
		for _, other := range c.Nodes[i+1:] {
			node.Do(t, "CLUSTER", "MEET", "127.0.0.1", other.port)
		}
	}
	c.awaitOK(t)
	return c
}

// awaitOK waits until every node knows all nodes and finds every slot served.
func (c *Cluster) awaitOK(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clusterLimit)
	defer cancel()
	for _, node := range c.Nodes {
		for {
			info, err := redis.String(node.Do(t, "CLUSTER", "INFO"), nil)
			if err != nil {
				t.Fatalf("redistest: CLUSTER INFO: %v", err)
			}
			if infoField(info, "cluster_state") == "ok" &&
				infoField(info, "cluster_known_nodes") == strconv.Itoa(clusterNodes) &&
				infoField(info, "cluster_size") == strconv.Itoa(clusterNodes) &&
				infoField(info, "cluster_slots_ok") == strconv.Itoa(clusterSlots) {
				break
			}
			select {
			case <-ctx.Done():
				t.Fatalf("redistest: the cluster did not form within %v; node %s says:\n%s\n%s", clusterLimit,
					node.Addr(), info, node.Output())
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
}

// Addrs returns host and port of every node.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.Nodes))
	for i, node := range c.Nodes {
		addrs[i] = node.Addr()
	}
	return addrs
}

// URL returns the address of all nodes as rediscluster.Dial takes it.
func (c *Cluster) URL() string { return "redis://" + strings.Join(c.Addrs(), ",") }

// NodeOf returns the node that serves key. It relies on the slots as StartCluster distributed them.
func (c *Cluster) NodeOf(t testing.TB, key string) *Server {
	t.Helper()
	slot, err := redis.Int(c.Nodes[0].Do(t, "CLUSTER", "KEYSLOT", key), nil)
	if err != nil {
		t.Fatalf("redistest: CLUSTER KEYSLOT: %v", err)
	}
	for i, node := range c.Nodes {
		if slot < (i+1)*clusterSlots/clusterNodes {
			return node
		}
	}
	t.Fatalf("redistest: CLUSTER KEYSLOT answered %d, expected less than %d", slot, clusterSlots)
	return nil
}

// Dial returns a connection to the node that serves key, closed at the end of the test. It does not follow
// redirections.
func (c *Cluster) Dial(t testing.TB, key string) redis.Conn {
	t.Helper()
	return c.NodeOf(t, key).Dial(t)
}
