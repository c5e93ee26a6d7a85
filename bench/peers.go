package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// peer is a task queue under test. Its producer and its worker are two processes of this program (driver.go); neither
// is the one that measures.
type peer struct {
	name  string // as in the tables, and as -peers takes it
	about string // one line for the tables' legend: settings that are not the peer's defaults

	// version returns what is installed, or an error that says what is missing and what installs it.
	version func() (string, error)
	// start starts the peer's own store, with durability off, everysec or always; nil for a redis-server.
	start func(aof string) (*server, error)
	// open opens the peer's queue.
	open func(addr string) (queue, error)

	// share is the part of the base point's number of tasks that this peer is given, so that one figure takes seconds;
	// 0 counts as 1.
	share float64
	// concurrency is the worker's concurrency where the others have that of the base point; 0: the same.
	concurrency int
	// polls is true if an idle worker looks for tasks now and then: the wake-up is measured with fewer tasks.
	polls bool
}

var allPeers = []*peer{delayedPeer, asynqPeer, ceilingPeer, riverPeer, jetStreamPeer}

// queue is one queue of a peer. A task carries a number and a text, encoded as the peer's documentation shows; its
// handler decodes both.
type queue interface {
	// enqueue adds one task and returns once the server has it. It is called by many goroutines at once.
	enqueue(number int64, text string) error
	// enqueueMany adds a task for each text, all with one number, by the peer's own call for many; errNone when it has
	// no such call.
	enqueueMany(number int64, texts []string) error
	// work starts a worker that calls handle for each task, and returns once the worker has been started.
	work(concurrency int, handle func(number int64, text string)) error
}

// Optional methods of a queue.
type (
	// setter prepares the queue for a request.
	setter interface{ set(r *request) }
	// former enqueues the i-th task of a form; see forms.
	former interface {
		enqueueAs(form string, i int64, text string) error
	}
	scheduler interface {
		schedule(due time.Time, number int64, text string) error
	}
	pretender interface {
		pretend(workers int, life time.Duration) error
	}
)

// errNone is the error for a call that a peer does not have; bench leaves the figure out.
var errNone = errors.New("no such call")

// The base point: the arguments of its tasks, about 20 bytes in MessagePack, and the concurrency of its workers.
const (
	baseNumber      = int64(1700000000000000000)
	baseText        = "hello-task"
	baseConcurrency = 50
)

func peerNamed(name string) (*peer, error) {
	var names []string
	for _, p := range allPeers {
		if p.name == name {
			return p, nil
		}
		names = append(names, p.name)
	}
	return nil, fmt.Errorf("expected one of %s, found %q", strings.Join(names, ", "), name)
}

// tasks returns the number of tasks for this peer where the base point has n, a multiple of 1,000.
func (p *peer) tasks(n int) int {
	if p.share == 0 {
		return n
	}
	return max(1000, int(float64(n)*p.share)/1000*1000)
}

// executors returns the concurrency of this peer's worker where the others have n.
func (p *peer) executors(n int) int { return cmp.Or(p.concurrency, n) }
