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
	"fmt"

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

func newSource(client goredis.UniversalClient) *clientconn.Source {
	switch c := client.(type) {
	case *goredis.Client:
		if c != nil {
			return &clientconn.Source{
				Client: clientconn.Single{Server: newNode(c)}, Name: c.Options().Addr + " (go-redis)",
			}
		}
	case *goredis.ClusterClient:
		if c != nil {
			return &clientconn.Source{
				Client: newCluster(c), Name: fmt.Sprint(c.Options().Addrs, " (go-redis, cluster)"),
			}
		}
	}
	panic(fmt.Errorf("delayed: goredis.New(%T): expected a *redis.Client or *redis.ClusterClient that is not nil",
		client))
}
