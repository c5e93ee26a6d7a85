package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// peer is a task queue under test. It is registered by the init function of its file, and is one of two kinds:
//
//   - a Go package: open returns its queue, and bench runs itself as the peer's producer and worker (`bench driver`);
//   - another program: driver returns its command line, and the program speaks the protocol of driver.go.
//
// Producer and worker are always two processes, and neither is the one that measures.
type peer struct {
	name  string // as in the tables, and as -only takes it
	about string // one line for the tables' legend: settings that are not the peer's defaults, what its worker is

	// version returns what is installed, or an error that says what is missing and what installs it.
	version func() (string, error)
	// start starts the peer's own store, with durability off, everysec or always; nil for a redis-server of the peer's
	// own.
	start func(aof string) (*server, error)
	// open opens the queue of a Go package; nil for another program.
	open func(addr string) (queue, error)
	// driver returns the command line of another program's driver; bench adds the address as the last argument.
	driver func() ([]string, error)

	// share is the part of the base point's number of tasks that this peer is given, so that one figure takes seconds;
	// 0 counts as 1.
	share float64
	// most bounds that number, for a peer that takes tens of milliseconds a task; 0 is no bound.
	most int
	// concurrency is the worker's concurrency for a peer that cannot run 50 tasks at once in one process; 0 is the base
	// point's.
	concurrency int
	// polls says that an idle worker looks for tasks now and then: the wake-up is measured with fewer tasks.
	polls bool
}

// queue is one queue of a peer that is a Go package. A task carries a number and a text, encoded as the peer's
// documentation shows; its handler decodes both.
type queue interface {
	// enqueue adds one task and returns once the server has it. It is called by many goroutines at once.
	enqueue(number int64, text string) error
	// enqueueMany adds a task for each text, all with one number, by the peer's own call for many; errNone when it has
	// no such call.
	enqueueMany(number int64, texts []string) error
	// work starts a worker that calls handle for each task, and returns once the worker has been started.
	work(concurrency int, handle func(number int64, text string)) (stop func(), err error)
	close()
}

// errNone says that a peer has no such call; bench leaves the figure out.
var errNone = errors.New("no such call")

// The arguments of the base point's tasks: about 20 bytes in MessagePack.
const (
	baseNumber = int64(1700000000000000000)
	baseText   = "hello-task"
	longText   = "long" // of a task whose handler takes 1 s, where handlers are mixed
)

var registered []*peer

// register adds a peer. It is called by init functions.
func register(p *peer) { registered = append(registered, p) }

// allPeers returns every peer: delayed, asynq and the ceiling first, then the others by name.
func allPeers() []*peer {
	first := []string{"delayed", "asynq", "ceiling"}
	rank := func(p *peer) int {
		if i := slices.Index(first, p.name); i >= 0 {
			return i
		}
		return len(first)
	}
	return slices.SortedFunc(slices.Values(registered), func(a, b *peer) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.name, b.name))
	})
}

func peerNamed(name string) (*peer, error) { return peerAmong(allPeers(), name) }

func peerAmong(peers []*peer, name string) (*peer, error) {
	var names []string
	for _, p := range peers {
		if p.name == name {
			return p, nil
		}
		names = append(names, p.name)
	}
	return nil, fmt.Errorf("there is no peer %q; expected one of %s", name, strings.Join(names, ", "))
}

// tasks returns the number of tasks for this peer where the base point has n, a multiple of 1,000.
func (p *peer) tasks(n int) int {
	if p.most > 0 && n > p.most {
		return p.most
	}
	if p.share <= 0 || p.share >= 1 {
		return n
	}
	return max(1000, int(float64(n)*p.share)/1000*1000)
}

// executors returns the concurrency of this peer's worker where the others have n.
func (p *peer) executors(n int) int { return cmp.Or(p.concurrency, n) }
