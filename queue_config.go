package delayed

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/godelayed/delayed/internal/redisstore"
)

// QueueConfig configures a queue.
type QueueConfig struct {
	// Inject returns headers for a task from the context that it is enqueued with, such as a trace context; see Header.
	// DelayContext, DelayMany and Enqueue call it in the goroutine of their caller, DelayMany once for all tasks.
	// Headers that Header sets take precedence. Python tasks of a legacy queue cannot carry headers and go without.
	// Defaults to none.
	Inject func(ctx context.Context) map[string]string
	// Around surrounds each call of Delay, DelayContext, DelayMany and Enqueue on the queue, for a span or a
	// measurement for example: it must call enqueue once, with ctx or a context made of it, before it returns. enqueue
	// calls Inject with that context, sends the tasks to Redis, and returns what the caller gets. Around runs in the
	// goroutine of the caller, so several may run at a time. The tasks have no ids yet. Tasks that fail before, because
	// of their arguments for example, do not come to it, nor do those of periodic entries. Defaults to none.
	Around func(ctx context.Context, tasks []*Task, enqueue func(context.Context) ([]*Ref, error))
	// WaitReplicas is the number of replicas that must confirm a task before the call that enqueues it succeeds: what a
	// master has accepted and not yet sent to a replica is lost in a fail-over. If fewer confirm it within 4 s, or four
	// fifths of the time that the call has if that is less, the call fails with ErrUnknown: the task is enqueued, and
	// may be lost. While replicas are missing, calls on one queue also wait for those before them, for as long as their
	// contexts allow. Replicas confirm what they have in memory. Defaults to 0: the master's word is enough.
	WaitReplicas int
	// Check compares each call with the functions that workers of the queue have published, before it is enqueued: the
	// path, and the number, types and ranges of the arguments. A call that no worker takes fails at once, and nothing
	// is enqueued. The error wraps ErrFunction and names the function that was probably meant, or is an *ArgumentError.
	// While versions of a function run beside each other, as during a deploy, a call must fit one of them.
	//
	// It is for programs that do not link the functions (NewGoTask, NewPyTask), and also finds that no worker has
	// registered a function of Delay, or only another version of it. So new workers must start before the programs that
	// call what is new. Enqueued without a comparison are calls while no worker of the function's language runs, or
	// while one publishes nothing or, because its list would be longer than 64 KiB, only a part; and arguments of
	// Python functions without annotations. Tasks of periodic entries, of RunAgain and of package inspect are not
	// compared.
	//
	// What workers have published is read once in ten seconds for all queues of the handle that have the same name, and
	// again before a call is refused; other calls cost no round trip. The list may be ten seconds old, and a function
	// that a running worker has registered later is found within a second. If it cannot be read, calls fail. Defaults
	// to false.
	Check bool
}

// NewQueue returns the queue with the given name: up to 128 printable bytes, without spaces. In a Redis Cluster it may
// carry a {tag}. NewQueue panics if the name is malformed; OpenQueue returns an error instead.
func NewQueue(name string, rdb *Store) *Queue {
	q, err := OpenQueue(name, rdb, QueueConfig{})
	if err != nil {
		panic(err)
	}
	return q
}

// OpenQueue is NewQueue with settings, and returns errors instead of panicking. It does not connect.
func OpenQueue(name string, rdb *Store, cfg QueueConfig) (*Queue, error) {
	if err := rdb.check(); err != nil {
		return nil, fmt.Errorf("delayed: OpenQueue: %w", err)
	}
	if err := rdb.checkQueue(name); err != nil {
		return nil, err
	}
	if cfg.WaitReplicas < 0 {
		return nil, fmt.Errorf("delayed: QueueConfig.WaitReplicas is %d: expected the number of replicas that must "+
			"have a task, from 0", cfg.WaitReplicas)
	}
	s := redisstore.NewStore(rdb.calls, rdb.prefix, name)
	if listenerOf(s.Src) == nil { // the server of delayedtest has no replicas
		s.Wait = cfg.WaitReplicas
	}
	q := &Queue{
		store: s, coalescer: rdb.coalescers.Of(s), signals: rdb.signals, name: name, legacy: rdb.legacy,
		inject: cfg.Inject, around: cfg.Around,
		settled: new(atomic.Int64), listener: listenerOf(s.Src),
		registry: rdb.registry, announced: new(atomic.Int64),
	}
	if cfg.Check {
		q.signatures = rdb.signatures.Get(rdb.prefix+name, func() *redisstore.Signatures {
			return redisstore.NewSignatures(s)
		})
	}
	return q, nil
}
