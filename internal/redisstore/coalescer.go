package redisstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
	"weak"
)

const (
	// callsAtOnce is how many calls of one coalescer are under way before tasks wait for one of them to end. With one,
	// callers that come while it is under way wait for two round trips; with four, there are more calls than it takes,
	// each with fewer tasks.
	callsAtOnce = 2
	// stallTime is how long tasks wait without any call coming to its end before other calls take the places of those:
	// connections that hang must not hold up a queue.
	stallTime = 100 * time.Millisecond
)

// Coalescer makes tasks that are enqueued at the same time on one queue go in shared calls of one script. A task that
// comes while no call is under way goes at once and alone. Those that come meanwhile gather, in their order, and go
// with the next call. There is no timer, and no goroutine while nobody enqueues. All queues of a handle that have the
// same name, and wait for as many replicas, share a coalescer.
type Coalescer struct {
	store *Store
	head  []any // what the arguments of the script begin with

	Mu          sync.Mutex
	epoch       int       // moves on when the calls that are under way are given up
	calls       int       // of this epoch that are under way or about to be; not 0 while tasks wait
	opening     int       // of these, runners that wait for a connection, and will take a bundle then
	givenUp     int       // calls of earlier epochs that have not ended
	first, Last *bundle   // tasks that wait; only the last bundle grows
	moved       time.Time // when the first of them came, a call ended, or calls were given up

	// opened bounds the wait of runners for a connection: it ends when no task waits any more. nil until needed.
	opened context.Context //nolint:containedctx // the runners' own: callers come and go
	cancel context.CancelFunc
}

// bundle is tasks that go with one call.
type bundle struct {
	args    *scriptArgs   // nil in place of a message whose caller has left
	size    int           // bytes of the messages
	Waiting int           // messages whose callers have not left
	Within  time.Duration // how long replicas are waited for: as long as the most patient caller would
	sealed  bool          // a call has taken it
	next    *bundle

	done chan struct{} // closed when err is set
	err  error
}

// NewCoalescer returns one for the pending list of a store.
func NewCoalescer(s *Store) *Coalescer {
	return &Coalescer{store: s, head: s.enqueueHead()}
}

// Enqueue makes a task pending, and returns when Redis has confirmed it. When ctx ends before the task is on its way,
// it is taken back and nothing is sent; when ctx ends later, the error wraps ErrUnknown. After an error message may
// stay in use. now is the time, more or less.
func (c *Coalescer) Enqueue(ctx context.Context, message []byte, now time.Time) error {
	if ctx.Err() != nil {
		return notSent(ctx)
	}
	var arg any = message // allocates: not under the lock
	c.Mu.Lock()
	if c.calls == 0 && ctx.Done() == nil {
		c.calls++
		epoch := c.epoch
		c.Mu.Unlock()
		return c.alone(epoch, arg) //nolint:contextcheck // ctx cannot end
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
		return c.leave(ctx, b, i)
	}
}

// alone sends one task, in the goroutine of its caller.
func (c *Coalescer) alone(epoch int, message any) error {
	defer func() {
		c.Mu.Lock()
		defer c.Mu.Unlock()
		if c.end(epoch) {
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

// join adds a message to those that wait, and says where.
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

// leave is for a caller whose context has ended. A task that no call has taken is taken back.
func (c *Coalescer) leave(ctx context.Context, b *bundle, i int) error {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if b.sealed {
		select {
		case <-b.done: // both at once: what is known counts
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

// deserted reports whether the callers of all tasks that wait have left.
func (c *Coalescer) deserted() bool {
	for b := c.first; b != nil; b = b.next {
		if b.Waiting > 0 {
			return false
		}
	}
	return true
}

// giveUp lets other calls take the places of those that are under way, whose callers wait on.
func (c *Coalescer) giveUp() {
	c.givenUp += c.calls
	c.calls, c.opening = 0, 0
	c.epoch++
}

// end counts a call that has ended, and reports whether another is to follow it.
func (c *Coalescer) end(epoch int) bool {
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

// start starts the runner of a call that is counted already. In a crowd it lets those that the last call has woken come
// along.
func (c *Coalescer) start(crowd bool) {
	if c.opened == nil {
		c.opened, c.cancel = context.WithCancel(context.Background())
	}
	c.opening++
	go c.run(c.opened, c.epoch, crowd)
}

// run makes calls as long as tasks wait.
func (c *Coalescer) run(opened context.Context, epoch int, crowd bool) {
	for more := true; more; crowd = true {
		if crowd {
			runtime.Gosched()
		}
		more = c.round(opened, epoch)
	}
}

// round makes one call, and reports whether this runner is to make another.
func (c *Coalescer) round(opened context.Context, epoch int) (more bool) {
	var b *bundle
	var err error
	returned := false
	defer func() {
		// a panic, or Goexit, of a Source that is not ours: it must neither keep anybody waiting nor end the process
		if !returned {
			err = fmt.Errorf("delayed: %s: panic: %v", ScriptEnqueue.Name, recover())
			if b == nil {
				b = c.take(epoch, false)
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
		if more = c.end(epoch); !more {
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
	b = c.take(epoch, err == nil)
	switch {
	case err == nil && b != nil:
		// Not opened, which is over when nobody waits behind these calls.
		err = conn.enqueue(context.Background(), b.args.list, b.Within) //nolint:contextcheck // see above
	case err == nil:
		conn.close()
	}
	returned = true
	return false
}

// take takes the first bundle out, or all of them when a runner has waited for a connection in vain; nil when there is
// none.
func (c *Coalescer) take(epoch int, connected bool) *bundle {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if epoch == c.epoch {
		c.opening--
	} else if !connected {
		return nil // those that wait have a runner of their own
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

// notSent is the error of a caller whose context ended before its task was on its way.
func notSent(ctx context.Context) error {
	return fmt.Errorf("delayed: %s: nothing was sent: %w", ScriptEnqueue.Name, endOf(ctx))
}

// endOf says why a context has ended: its error, and its cause if that is another.
func endOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// Coalescers holds those of one handle, by pending list and replicas waited for, as long as a Queue uses them.
type Coalescers struct {
	Mu    sync.Mutex
	ByKey map[coalescerKey]weak.Pointer[Coalescer]
}

type coalescerKey struct {
	list string
	wait int
}

// Of returns the coalescer of a store's queue.
func (cs *Coalescers) Of(s *Store) *Coalescer {
	cs.Mu.Lock()
	defer cs.Mu.Unlock()
	key := coalescerKey{s.Keys.List, s.Wait}
	if c := cs.ByKey[key].Value(); c != nil {
		return c
	}
	if cs.ByKey == nil {
		cs.ByKey = map[coalescerKey]weak.Pointer[Coalescer]{}
	}
	c := NewCoalescer(s)
	cs.ByKey[key] = weak.Make(c)
	runtime.AddCleanup(c, cs.forget, key)
	return c
}

// forget drops a queue's coalescer when it is out of use, unless another has taken its place.
func (cs *Coalescers) forget(key coalescerKey) {
	cs.Mu.Lock()
	defer cs.Mu.Unlock()
	if cs.ByKey[key].Value() == nil {
		delete(cs.ByKey, key)
	}
}
