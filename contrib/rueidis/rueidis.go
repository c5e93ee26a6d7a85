// Package rueidis connects through a client of github.com/redis/rueidis that the program has already, so that no second
// pool of connections is needed.
//
//	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"localhost:6379"}})
//	rdb := delayedrueidis.New(client)
//	q := delayed.NewQueue("mail", rdb)
//
// The program owns the client: closing the *delayed.Store leaves it open. Close the *delayed.Store first.
//
// All connections are dedicated ones of rueidis, out of the pool that its option BlockingPoolSize bounds: calls take
// one for as long as they last, and workers keep some for long; delayed.FromPool documents how many. The connections on
// which rueidis joins concurrent commands are not used, as a large claim would hold up the other commands there.
//
// A command is never sent a second time, whether or not the client retries. When a context ends during a call, its
// connection is closed.
package rueidis

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/clientconn"
)

// New returns a handle that uses a client of rueidis for one server, for the master that Sentinels name, or for a
// cluster. For a cluster, names of queues carry a tag, as package rediscluster documents. Closing the handle leaves the
// client open. New panics if the client is nil.
func New(client rueidis.Client) *delayed.Store { return delayed.FromSource(newSource(client)) }

// source hands out connections of a client. It is safe for concurrent use.
type source struct {
	clientconn.Client
	name string
	slot func(key string) int
}

func newSource(client rueidis.Client) *source {
	if client == nil {
		panic(errors.New("delayed: rueidis.New(nil): expected a client"))
	}
	name := fmt.Sprintf("an address that a client of rueidis knows (%s)", client.Mode())
	if client.Mode() == rueidis.ClientModeCluster {
		return &source{newCluster(client), name, clientconn.Slot}
	}
	return &source{single{newNode("", client)}, name, func(string) int { return 0 }}
}

// Conn takes a connection for key out of the client's pool. The caller closes it. Its method Discard() error closes the
// network connection in place of giving it back.
func (s *source) Conn(ctx context.Context, key string) (redis.Conn, error) {
	c, err := clientconn.Take(ctx, s.Client, key)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Slot returns the hash slot of key, 0 without a cluster.
func (s *source) Slot(key string) int { return s.slot(key) }

// String describes the client, for logs.
func (s *source) String() string { return s.name }

// Close leaves the client open, which is the program's.
func (s *source) Close() error { return nil }

// single is a client of one server, or of the master that Sentinels name.
type single struct{ *node }

// Node implements clientconn.Client.
func (s single) Node(context.Context, string) (clientconn.Node, error) { return s.node, nil }

// NodeAt implements clientconn.Client.
func (s single) NodeAt(context.Context, string, string) (clientconn.Node, error) { return s.node, nil }

// Moved implements clientconn.Client.
func (s single) Moved(context.Context, string, string) {}

// Cluster implements clientconn.Client.
func (s single) Cluster() bool { return false }
