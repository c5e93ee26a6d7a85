package goredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/godelayed/delayed/internal/clientconn"
)

// replyTimeout is how long connections of the pool wait for a reply. It is that of delayed's other connections.
const replyTimeout = 5 * time.Second

// node is one server.
type node struct {
	addr   string
	client *goredis.Client // with our time-outs; nil for a node that the program's client does not know yet
	opt    *goredis.Options
}

func newNode(client *goredis.Client) *node {
	opt := client.Options()
	return &node{addr: opt.Addr, client: client.WithTimeout(replyTimeout), opt: opt}
}

// Addr implements clientconn.Node.
func (n *node) Addr() string { return n.addr }

// Take implements clientconn.Node.
func (n *node) Take(ctx context.Context) (clientconn.Wire, error) {
	if n.client == nil {
		return n.Wait(ctx)
	}
	w := &wire{conn: n.client.Conn()}
	// go-redis takes a connection only for a command. This one takes it and then fails before it is sent, with an
	// answer that leaves the connection in order. So an error of this method means that nothing was sent.
	probe := noRetry{goredis.NewRawCmd(ctx, "PING", failing{goredis.Nil})}
	if err := w.conn.Process(ctx, probe); !errors.Is(err, goredis.Nil) {
		w.conn.Close()
		return nil, n.explain(err)
	}
	return w, nil
}

// explain adds to the error of taking a connection that the pool is the reason, if it is.
func (n *node) explain(err error) error {
	used := errors.Is(err, goredis.ErrPoolTimeout) || errors.Is(err, goredis.ErrPoolExhausted)
	if !used && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		stats := n.client.PoolStats()
		used = stats.IdleConns == 0 && int(stats.TotalConns) >= n.opt.PoolSize
	}
	if !used {
		return err
	}
	return fmt.Errorf("delayed: the pool of the program's go-redis client has all its %d connections in use: expected "+
		"a free one: raise its PoolSize (with MaxActiveConns, if set), or end other uses of it sooner: %w",
		n.opt.PoolSize, err)
}

// Wait implements clientconn.Node.
func (n *node) Wait(ctx context.Context) (clientconn.Wire, error) {
	conn, err := n.dial(ctx)
	if err != nil {
		return nil, err
	}
	return &clientconn.Dialled{Conn: conn}, nil
}

// Subscribe implements clientconn.Node.
func (n *node) Subscribe(ctx context.Context) (clientconn.Subscription, error) {
	conn, err := n.dial(ctx)
	sub, _ := conn.(clientconn.Subscription)
	return sub, err
}

// dial makes a connection outside of the pool.
func (n *node) dial(ctx context.Context) (redis.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	user, password, err := n.credentials(ctx)
	if err != nil {
		return nil, err
	}
	opts := []redis.DialOption{
		redis.DialContextFunc(func(ctx context.Context, network, addr string) (net.Conn, error) {
			return n.opt.Dialer(ctx, network, addr)
		}),
		redis.DialWriteTimeout(replyTimeout), redis.DialDatabase(n.opt.DB),
	}
	if n.opt.ClientName != "" {
		opts = append(opts, redis.DialClientName(n.opt.ClientName))
	}
	if password != "" {
		opts = append(opts, redis.DialUsername(user), redis.DialPassword(password))
	}
	return redis.DialContext(ctx, n.opt.Network, n.addr, opts...)
}

// credentials returns what the program's client logs in with, in its order of precedence.
func (n *node) credentials(ctx context.Context) (user, password string, err error) {
	switch opt := n.opt; {
	case opt.StreamingCredentialsProvider != nil:
		found, forget, err := opt.StreamingCredentialsProvider.Subscribe(&listener{})
		if err != nil {
			return "", "", err
		}
		if forget != nil {
			defer forget() //nolint:errcheck // there are no news that would be missed
		}
		user, password = found.BasicAuth()
		return user, password, nil
	case opt.CredentialsProviderContext != nil:
		return opt.CredentialsProviderContext(ctx)
	case opt.CredentialsProvider != nil:
		user, password = opt.CredentialsProvider()
		return user, password, nil
	default:
		return opt.Username, opt.Password, nil
	}
}

// listener receives later credentials, which a connection does not need once it has logged in.
type listener struct{ _ byte }

func (*listener) OnNext(auth.Credentials) {}
func (*listener) OnError(error)           {}

// cluster is a client of a cluster.
type cluster struct {
	client *goredis.ClusterClient

	mu    sync.Mutex // protects nodes
	nodes map[*goredis.Client]*node
}

func newCluster(client *goredis.ClusterClient) *cluster {
	return &cluster{client: client, nodes: map[*goredis.Client]*node{}}
}

// Node implements clientconn.Client.
func (c *cluster) Node(ctx context.Context, key string) (clientconn.Node, error) {
	client, err := c.client.MasterForKey(ctx, key)
	if err != nil {
		return nil, err
	}
	return c.of(client), nil
}

// of returns the node of a client.
func (c *cluster) of(client *goredis.Client) *node {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[client]
	if n == nil {
		if len(c.nodes) >= maxNodes {
			clear(c.nodes) // most have left the cluster
		}
		n = newNode(client)
		c.nodes[client] = n
	}
	return n
}

// maxNodes bounds the nodes that are remembered.
const maxNodes = 1000

// NodeAt implements clientconn.Client.
func (c *cluster) NodeAt(ctx context.Context, key, addr string) (clientconn.Node, error) {
	var mu sync.Mutex
	var found *goredis.Client
	err := c.client.ForEachMaster(ctx, func(_ context.Context, client *goredis.Client) error {
		if client.Options().Addr == addr {
			mu.Lock()
			defer mu.Unlock()
			found = client
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if found != nil {
		return c.of(found), nil
	}
	// The client does not know this node yet, as it serves its first slot. Dial it as its others.
	known, err := c.client.MasterForKey(ctx, key)
	if err != nil {
		return nil, err
	}
	opt := *known.Options()
	opt.Addr = addr
	return &node{addr: addr, opt: &opt}, nil
}

// Moved implements clientconn.Client.
func (c *cluster) Moved(ctx context.Context, key, addr string) {
	if n, err := c.Node(ctx, key); err != nil || n.Addr() != addr {
		c.client.ReloadState(ctx)
	}
}

// Cluster implements clientconn.Client.
func (c *cluster) Cluster() bool { return true }
