package redisstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/group"
)

const (
	// callsAtOnce is how many calls of one coalescer may be under way; further tasks wait. With one, callers that come
	// during a call wait for two round trips; with four, there are more calls than needed, each with fewer tasks.
	callsAtOnce = 2
	// stallTime is how long tasks wait for a call to end before other calls take the places of those under way:
	// connections that hang must not hold up a queue.
	stallTime = 100 * time.Millisecond
)

// Coalescer sends tasks that are enqueued at the same time on one queue in shared calls of scripts. A task that comes
// while no call is under way is sent at once and alone. Tasks that come during a call collect, in their order, for the
// next call of their script. There is no timer, and no goroutine while nobody enqueues. All queues of a handle that
// have the same name, and wait for as many replicas, share a coalescer.
type Coalescer struct {
	store *Store
	heads [numKinds][]any // first arguments of the scripts

	Mu          sync.Mutex
	epoch       int               // rises when the calls under way are given up
	calls       int               // calls of this epoch that are under way or about to be; not 0 while tasks wait
	opening     int               // those of them that wait for a connection, before they take a bundle
	givenUp     int               // calls of earlier epochs that have not ended
	first, Last *bundle           // waiting tasks
	open        [numKinds]*bundle // of them the last of each kind, which grows
	moved       time.Time         // when the first waiting task came, a call ended, or calls were given up

	// opened is the context in which runners wait for a connection. It ends when no task waits any more. nil until
	// needed.
	opened context.Context //nolint:containedctx // the runners' own: callers come and go
	cancel context.CancelFunc
}

// NewCoalescer returns one for the pending list of a store.
func NewCoalescer(s *Store) *Coalescer {
	c := &Coalescer{store: s}
	for k := range kinds {
		c.heads[k] = kinds[k].head(s)
	}
	return c
}

// Enqueue makes tasks pending, all or none, and returns when Redis has confirmed them. A single task shares a call with
// those of other callers; several have a call of their own. When ctx ends before a call has taken the tasks, nothing is
// sent; when ctx ends later, the error wraps ErrUnknown. After an error, the messages may still be in use. now is the
// present time; it need not be exact. All of this applies to Schedule, Enlist and Gather too. For how many tasks they
// take see those of Store.
func (c *Coalescer) Enqueue(ctx context.Context, tasks []Envelope, now time.Time) error {
	if len(tasks) > 1 {
		return c.store.Enqueue(ctx, tasks)
	}
	_, err := c.call(ctx, byEnqueue, now, len(tasks[0].Message), "", tasks[0].Message)
	return err
}

// Schedule files tasks until they are due, in ms from now if relative, else since 1970. If another filed task has the
// id of one of them, the error is a *TakenError.
func (c *Coalescer) Schedule(ctx context.Context, tasks []Envelope, due int64, relative bool, now time.Time) error {
	if len(tasks) > 1 {
		return c.store.Schedule(ctx, tasks, due, relative)
	}
	t := &tasks[0]
	_, err := c.call(ctx, bySchedule, now, len(t.Message), "", dueArg(due, relative), t.ID, t.Message)
	if _, taken := err.(*TakenError); taken { //nolint:errorlint // bare
		return &TakenError{ID: t.ID}
	}
	return err
}

// Enlist makes tasks pending or files them until they are due. It returns the ids of existing tasks that were kept
// instead, as those of Store does, or nothing if there are none. If a task is refused, the error is an *EnlistError.
func (c *Coalescer) Enlist(
	ctx context.Context, at Place, tasks []Envelope, now time.Time,
) (others []string, err error) {
	if len(tasks) > 1 {
		return c.store.Enlist(ctx, at, tasks)
	}
	t := &tasks[0]
	task := listingArgs(t, at)
	fails := t.Hold == nil || t.Hold.Conflict == conflictFail
	if fails {
		task[ruleArg] = ruleWords[conflictSkip] // a refusal must not be that of the other tasks
	}
	answer, err := c.call(ctx, byEnlist, now, len(t.Message), "", task[:]...)
	if err != nil {
		return nil, err
	}
	switch other, err := redis.String(answer, nil); {
	case err != nil:
		return nil, fmt.Errorf("%w: enlist: %w", ErrReply, err)
	case other == "":
		return nil, nil
	case fails:
		return nil, &EnlistError{TakenError: TakenError{ID: other}}
	default:
		return []string{other}, nil
	}
}

// Gather adds calls to their groups, as many of the first ones as one script takes, and returns how many.
func (c *Coalescer) Gather(ctx context.Context, members []group.Member, now time.Time) (n int, err error) {
	if len(members) > 1 {
		return c.store.Gather(ctx, members)
	}
	m := &members[0]
	task := memberArgs(m, 1)
	_, err = c.call(ctx, byGather, now, len(m.Message), m.Group, task[:]...)
	return 1, err
}

// call sends the arguments of one task, alone or with others, and returns the script's answer to it, if it has one.
func (c *Coalescer) call(
	ctx context.Context, k kind, now time.Time, size int, grouped string, task ...any,
) (answer any, err error) {
	if ctx.Err() != nil {
		return nil, notSent(ctx, k)
	}
	c.Mu.Lock()
	if c.calls == 0 && ctx.Done() == nil {
		c.calls++
		epoch := c.epoch
		c.Mu.Unlock()
		return c.sendAlone(epoch, k, grouped, task) //nolint:contextcheck // ctx cannot end
	}
	b := c.bundleFor(k, size, now)
	place := b.add(size, grouped, task)
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
		return b.resultOf(place)
	}
	select {
	case <-b.done:
		return b.resultOf(place)
	case <-ctx.Done():
		return c.withdraw(ctx, b, place)
	}
}

// sendAlone sends one task, in the goroutine of its caller.
func (c *Coalescer) sendAlone(epoch int, k kind, grouped string, task []any) (answer any, err error) {
	defer func() {
		c.Mu.Lock()
		defer c.Mu.Unlock()
		if c.callEnded(epoch) {
			c.start(true)
		}
	}()
	args := newArgs(c.heads[k])
	if grouped != "" {
		args.list = withGroups(args.list, c.store, []string{grouped})
	}
	args.list = append(args.list, task...)
	return c.sendOne(k, args, LongestWait)
}

// sendOne sends one task on a connection of its own.
func (c *Coalescer) sendOne(k kind, args *scriptArgs, within time.Duration) (answer any, err error) {
	conn, err := c.store.open(context.Background())
	if err != nil {
		return nil, err
	}
	answers, err := conn.send(context.Background(), k, args.list, 1, within)
	args.free(err)
	if len(answers) == 1 {
		answer = answers[0]
	}
	return answer, err
}

// bundleFor returns the bundle that a task of a kind joins.
func (c *Coalescer) bundleFor(k kind, size int, now time.Time) *bundle {
	if b := c.open[k]; b != nil && !b.full(size) {
		return b
	}
	b := &bundle{kind: k, args: newArgs(c.heads[k]), head: len(c.heads[k]), done: make(chan struct{})}
	if c.Last == nil {
		c.first, c.moved = b, now
	} else {
		c.Last.next = b
	}
	c.Last, c.open[k] = b, b
	return b
}

// withdraw removes a task whose caller's context has ended, unless a call has taken it.
func (c *Coalescer) withdraw(ctx context.Context, b *bundle, place int) (any, error) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if b.sealed {
		select {
		case <-b.done: // both have ended: the result is known
			return b.resultOf(place)
		default:
			return nil, fmt.Errorf("%w: %s: %w", ErrUnknown, kinds[b.kind].script.Name, endOf(ctx))
		}
	}
	b.remove(place)
	if b.Waiting == 0 && c.deserted() {
		c.first, c.Last, c.open = nil, nil, [numKinds]*bundle{}
		if c.opening > 0 { // for nobody
			c.cancel()
			c.opened, c.cancel = nil, nil
			c.giveUp()
		}
	}
	return nil, notSent(ctx, b.kind)
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
			err = fmt.Errorf("delayed: enqueueing: panic: %v", recover())
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
		err = c.sendTasks(conn, b) //nolint:contextcheck // opened ends when no further task waits
	case err == nil:
		conn.close()
	}
	returned = true
	return false
}

// sendTasks makes the call of a bundle. If Redis refuses that for what may be the fault of one task, it sends each of
// them alone.
func (c *Coalescer) sendTasks(conn enqueuer, b *bundle) error {
	n := b.Waiting
	answers, err := conn.send(context.Background(), b.kind, b.args.list, n, b.Within)
	if n > 1 && refusedForOne(b.kind, err) {
		for i := range n {
			answer, err := c.sendOne(b.kind, b.alone(i), b.Within)
			b.results = append(b.results, result{answer, err})
		}
		return nil
	}
	for _, a := range answers {
		b.results = append(b.results, result{a, nil})
	}
	return err
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
		c.closeBundle(b)
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
		c.closeBundle(s)
		s.sealed = true
	}
	if connected && b != nil {
		b.seal(c.store)
	}
	return b
}

// closeBundle lets no further task join a bundle.
func (c *Coalescer) closeBundle(b *bundle) {
	if c.open[b.kind] == b {
		c.open[b.kind] = nil
	}
}

// notSent returns the error for a caller whose context ended before a call took its task.
func notSent(ctx context.Context, k kind) error {
	return fmt.Errorf("delayed: %s: nothing was sent: %w", kinds[k].script.Name, endOf(ctx))
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
