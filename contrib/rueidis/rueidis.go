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
	"errors"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/clientconn"
)

// New returns a handle that uses a client of rueidis for one server, for the master that Sentinels name, or for a
// cluster. For a cluster, names of queues carry a tag, as package rediscluster documents. Closing the handle leaves the
// client open. New panics if the client is nil.
func New(client rueidis.Client) *delayed.Store { return delayed.FromSource(newSource(client)) }

func newSource(client rueidis.Client) *clientconn.Source {
	if client == nil {
		panic(errors.New("delayed: rueidis.New(nil): expected a client"))
	}
	name := fmt.Sprintf("an address that a client of rueidis knows (%s)", client.Mode())
	if client.Mode() == rueidis.ClientModeCluster {
		return &clientconn.Source{Client: newCluster(client), Name: name}
	}
	return &clientconn.Source{Client: clientconn.Single{Server: newNode("", client)}, Name: name}
}
