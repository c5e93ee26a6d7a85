package redisstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// callsAtOnce is how many calls of one coalescer may be under way; further tasks wait. With one, callers that come
	// during a call wait for two round trips; with four, there are more calls than needed, each with fewer tasks.
	callsAtOnce = 2
	// stallTime is how long tasks wait for a call to end before other calls take the places of those under way:
	// connections that hang must not hold up a queue.
	stallTime = 100 * time.Millisecond
)

// Coalescer sends tasks that are enqueued at the same time on one queue in shared calls of one script. A task that
// comes while no call is under way is sent at once and alone. Tasks that come during a call collect, in their order,
// for the next call. There is no timer, and no goroutine while nobody enqueues. All queues of a handle that have the
// same name, and wait for as many replicas, share a coalescer.
type Coalescer struct {
	store *Store
	head  []any // first arguments of the script

	Mu          sync.Mutex
	epoch       int       // rises when the calls under way are given up
	calls       int       // calls of this epoch that are under way or about to be; not 0 while tasks wait
	opening     int       // those of them that wait for a connection, before they take a bundle
	givenUp     int       // calls of earlier epochs that have not ended
	first, Last *bundle   // waiting tasks; only the last bundle grows
	moved       time.Time // when the first waiting task came, a call ended, or calls were given up

	// opened is the context in which runners wait for a connection. It ends when no task waits any more. nil until
	// needed.
	opened context.Context //nolint:containedctx // the runners' own: callers come and go
	cancel context.CancelFunc
}

// bundle holds the tasks of one call.
type bundle struct {
	args    *scriptArgs   // with nil in place of a message whose caller has left
	size    int           // bytes of the messages
	Waiting int           // messages whose callers have not left
	Within  time.Duration // how long to wait for replicas: the longest time that one of the callers has
	sealed  bool          // a call has taken it
	next    *bundle

	done chan struct{} // closed when err is set
	err  error
}

// NewCoalescer returns one for the pending list of a store.
func NewCoalescer(s *Store) *Coalescer {
	return &Coalescer{store: s, head: s.enqueueHead()}
}

// Enqueue makes a task pending, and returns when Redis has confirmed it. When ctx ends before a call has taken the
// task, nothing is sent; when ctx ends later, the error wraps ErrUnknown. After an error, message may still be in use.
// now is the present time; it need not be exact.
func (c *Coalescer) Enqueue(ctx context.Context, message []byte, now time.Time) error {
	if ctx.Err() != nil {
		return notSent(ctx)
	}
	var arg any = message // allocates, so not under the lock
	c.Mu.Lock()
	if c.calls == 0 && ctx.Done() == nil {
		c.calls++
		epoch := c.epoch
		c.Mu.Unlock()
		return c.sendAlone(epoch, arg) //nolint:contextcheck // ctx cannot end
	}
	b, i := c.join(arg, len(message), now)
	if c.store.Wait > 0 {
		b.Within = max(b.Within, waitOf(ctx))
	}
	if c.opening == 0 && now.Sub(c.moved) > stallTime && c.calls+c.givenUp < CallerConns {
		c.giveUp()
		c.moved = now
	}
	if c.calls < callsAtOnce && c.opening == 0 {
		c.calls++
		c.start(c.calls > 1)
	}
	c.Mu.Unlock()
	if ctx.Done() == nil {
		<-b.done
		return b.err
	}
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return c.withdraw(ctx, b, i)
	}
}

// sendAlone sends one task, in the goroutine of its caller.
func (c *Coalescer) sendAlone(epoch int, message any) error {
	defer func() {
		c.Mu.Lock()
		defer c.Mu.Unlock()
		if c.callEnded(epoch) {
			c.start(true)
		}
	}()
	conn, err := c.store.open(context.Background())
	if err != nil {
		return err
	}
	args := newArgs(c.head)
	args.list = append(args.list, message)
	err = conn.enqueue(context.Background(), args.list, LongestWait)
	args.free(err)
	return err
}

// join adds a message to the last bundle, and returns that and the message's place in it.
func (c *Coalescer) join(message any, size int, now time.Time) (b *bundle, i int) {
	if b = c.Last; b == nil || len(b.args.list) == len(c.head)+MaxBatchTasks || b.size+size > MaxBatchBytes {
		b = &bundle{args: newArgs(c.head), done: make(chan struct{})}
		if c.Last == nil {
			c.first, c.moved = b, now
		} else {
			c.Last.next = b
		}
		c.Last = b
	}
	i = len(b.args.list)
	b.args.list = append(b.args.list, message)
	b.size += size
	b.Waiting++
	return b, i
}

// withdraw removes a task whose caller's context has ended, unless a call has taken it.
func (c *Coalescer) withdraw(ctx context.Context, b *bundle, i int) error {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if b.sealed {
		select {
		case <-b.done: // both have ended: the result is known
			return b.err
		default:
			return fmt.Errorf("%w: %s: %w", ErrUnknown, ScriptEnqueue.Name, endOf(ctx))
		}
	}
	b.args.list[i] = nil
	if b.Waiting--; b.Waiting == 0 && c.deserted() {
		c.first, c.Last = nil, nil
		if c.opening > 0 { // for nobody
			c.cancel()
			c.opened, c.cancel = nil, nil
			c.giveUp()
		}
	}
	return notSent(ctx)
}

// deserted reports whether the callers of all waiting tasks have left.
func (c *Coalescer) deserted() bool {
	for b := c.first; b != nil; b = b.next {
		if b.Waiting > 0 {
			return false
		}
	}
	return true
}

// giveUp lets other calls take the places of those under way, whose callers go on waiting.
func (c *Coalescer) giveUp() {
	c.givenUp += c.calls
	c.calls, c.opening = 0, 0
	c.epoch++
}

// callEnded notes that a call has ended, and reports whether its runner should make another.
func (c *Coalescer) callEnded(epoch int) bool {
	switch {
	case epoch != c.epoch:
		c.givenUp--
		return false
	case c.first == nil:
		c.calls--
		return false
	}
	c.moved = time.Now()
	if c.opening > 0 {
		c.calls--
		return false
	}
	return true
}

// start starts the runner of a call that c.calls already counts. With crowd, the runner first yields, so that callers
// which the last call has woken can join.
func (c *Coalescer) start(crowd bool) {
	if c.opened == nil {
		c.opened, c.cancel = context.WithCancel(context.Background())
	}
	c.opening++
	go c.sendBundles(c.opened, c.epoch, crowd)
}

// sendBundles makes calls while tasks wait.
func (c *Coalescer) sendBundles(opened context.Context, epoch int, crowd bool) {
	for more := true; more; crowd = true {
		if crowd {
			runtime.Gosched()
		}
		more = c.sendBundle(opened, epoch)
	}
}

// sendBundle makes one call, and reports whether its runner should make another.
func (c *Coalescer) sendBundle(opened context.Context, epoch int) (more bool) {
	var b *bundle
	var err error
	returned := false
	defer func() {
		// A panic or Goexit in a user's Source must neither leave callers waiting nor end the process.
		if !returned {
			err = fmt.Errorf("delayed: %s: panic: %v", ScriptEnqueue.Name, recover())
			if b == nil {
				b = c.takeBundle(epoch, false)
			} else {
				err = fmt.Errorf("%w: %w", ErrUnknown, err)
			}
		}
		for ; b != nil; b = b.next {
			b.args.free(err)
			b.err = err
			close(b.done)
		}
		c.Mu.Lock()
		defer c.Mu.Unlock()
		if more = c.callEnded(epoch); !more {
			return
		}
		if returned {
			c.opening++
			return
		}
		c.start(true)
		more = false
	}()
	conn, err := c.store.open(opened)
	b = c.takeBundle(epoch, err == nil)
	switch {
	case err == nil && b != nil:
		// Not with opened, which ends when no further task waits.
		err = conn.enqueue(context.Background(), b.args.list, b.Within) //nolint:contextcheck // see above
	case err == nil:
		conn.close()
	}
	returned = true
	return false
}

// takeBundle removes the first bundle, or all bundles when the runner got no connection, and returns the first one; nil
// when there is none.
func (c *Coalescer) takeBundle(epoch int, connected bool) *bundle {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if epoch == c.epoch {
		c.opening--
	} else if !connected {
		return nil // a runner of the present epoch takes the waiting tasks
	}
	b := c.first
	for connected && b != nil && b.Waiting == 0 {
		b = b.next
	}
	c.first = nil
	if connected && b != nil {
		c.first, b.next = b.next, nil
	}
	if c.first == nil {
		c.Last = nil
	}
	for s := b; s != nil; s = s.next {
		s.sealed = true
	}
	if connected && b != nil && b.Waiting < len(b.args.list)-len(c.head) {
		b.args.list = slices.DeleteFunc(b.args.list, func(a any) bool { return a == nil })
	}
	return b
}

// notSent returns the error for a caller whose context ended before a call took its task.
func notSent(ctx context.Context) error {
	return fmt.Errorf("delayed: %s: nothing was sent: %w", ScriptEnqueue.Name, endOf(ctx))
}

// endOf returns why a context has ended: its error, and its cause if that differs.
func endOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// Coalescers holds the coalescers of one handle, by pending list and number of replicas, while a Queue uses them.
type Coalescers struct {
	Shared[coalescerKey, Coalescer]
}

type coalescerKey struct {
	list string
	wait int
}

// Of returns the coalescer of a store's queue.
func (cs *Coalescers) Of(s *Store) *Coalescer {
	return cs.Get(coalescerKey{s.keys.list, s.Wait}, func() *Coalescer { return NewCoalescer(s) })
}
