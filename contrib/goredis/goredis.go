// Package goredis connects through a client of github.com/redis/go-redis/v9 that the program has already, so that no
// second pool of connections is needed.
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	rdb := goredis.New(client)
//	q := delayed.NewQueue("mail", rdb)
//
// The program owns the client: closing the *delayed.Store leaves it open. Close the *delayed.Store first.
//
// Calls take a connection out of the client's pool for as long as they last, and workers keep some for long:
// delayed.FromPool documents how many. Two kinds of connections are not taken out of the pool, because go-redis cannot
// end a wait on such a one: those on which an idle worker waits for tasks, one for each slot, and one for each handle
// for messages. They are made with the client's dialler, credentials and database, and are outside of its pool as those
// for Subscribe of go-redis are; hooks and OnConnect do not see them.
//
// A command is never sent a second time, whatever MaxRetries of the client is. A reply is waited for five seconds,
// whatever ReadTimeout is. When a context ends during a call, the call returns at once, and its connection leaves the
// pool as soon as the reply is there or those five seconds are over.
package goredis

import (
	"context"
	"fmt"

	"github.com/gomodule/redigo/redis"
	goredis "github.com/redis/go-redis/v9"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/clientconn"
)

// New returns a handle that uses a *redis.Client of go-redis, also one of NewFailoverClient for Sentinel, or a
// *redis.ClusterClient. For a cluster, names of queues carry a tag, as package rediscluster documents. Closing the
// handle leaves the client open. New panics if the client is nil or of another type.
func New(client goredis.UniversalClient) *delayed.Store {
	return delayed.FromSource(newSource(client))
}

// source hands out connections of a client. It is safe for concurrent use.
type source struct {
	clientconn.Client
	name string
	slot func(key string) int
}

func newSource(client goredis.UniversalClient) *source {
	switch c := client.(type) {
	case *goredis.Client:
		if c != nil {
			return &source{single{newNode(c)}, c.Options().Addr + " (go-redis)", func(string) int { return 0 }}
		}
	case *goredis.ClusterClient:
		if c != nil {
			return &source{newCluster(c), fmt.Sprint(c.Options().Addrs, " (go-redis, cluster)"), clientconn.Slot}
		}
	}
	panic(fmt.Errorf("delayed: goredis.New(%T): expected a *redis.Client or *redis.ClusterClient that is not nil",
		client))
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

// String returns the address, for logs.
func (s *source) String() string { return s.name }

// Close leaves the client open, which is the program's.
func (s *source) Close() error { return nil }
