package clientconn

import (
	"context"

	"github.com/gomodule/redigo/redis"
	"github.com/mna/redisc"
)

// Source hands out the connections of a Client, and leaves that open when it is closed. It implements
// delayed.Source, and is safe for concurrent use.
type Source struct {
	Client
	Name string // for logs
}

// Conn takes a connection for key out of the client's pool. The caller closes it. Its method Discard() error closes the
// network connection in place of giving it back.
func (s *Source) Conn(ctx context.Context, key string) (redis.Conn, error) {
	node, err := s.Node(ctx, key)
	if err != nil {
		return nil, err
	}
	wire, err := node.Take(ctx)
	if err != nil {
		return nil, err
	}
	return &Conn{client: s.Client, key: key, node: node, wire: wire}, nil
}

// Slot returns the hash slot of key, 0 without a cluster.
func (s *Source) Slot(key string) int {
	if !s.Cluster() {
		return 0
	}
	return Slot(key)
}

// String returns the name.
func (s *Source) String() string { return s.Name }

// Close does nothing.
func (s *Source) Close() error { return nil }

// Slot returns the hash slot that a cluster has for key.
func Slot(key string) int { return redisc.Slot(key) }

// Single is a Client of one server, or of the master that Sentinels name.
type Single struct{ Server Node }

// Node implements Client.
func (s Single) Node(context.Context, string) (Node, error) { return s.Server, nil }

// NodeAt implements Client.
func (s Single) NodeAt(context.Context, string, string) (Node, error) { return s.Server, nil }

// Moved implements Client.
func (s Single) Moved(context.Context, string, string) {}

// Cluster implements Client.
func (s Single) Cluster() bool { return false }
