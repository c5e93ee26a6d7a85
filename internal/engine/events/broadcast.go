package events

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/internal/catalog"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

const (
	// broadcastEvery is how long events are gathered before they are published together.
	broadcastEvery = 100 * time.Millisecond
	// MaxBroadcast bounds the events of a queue that are published together: the latest ones. Others are counted.
	MaxBroadcast = 200
	// MaxErrorText bounds the text of an error in an event, in bytes.
	MaxErrorText = 500
	// maxWatch bounds how long one request to watch holds.
	maxWatch = time.Minute
)

// Broadcast publishes the events of queues that somebody watches. While nobody does, it costs one atomic load for each
// event that might be made.
type Broadcast struct {
	on     atomic.Bool // somebody watches a queue
	worker string      // id
	wake   chan struct{}

	Mu     sync.Mutex // protects the following
	Queues map[string]*watchedQueue
}

// watchedQueue is a queue that somebody watches.
type watchedQueue struct {
	store  *redisstore.Store
	since  time.Time // when it was not watched before
	Until  time.Time
	made   int             // events since then
	events []catalog.Event // those to be published; a ring once it is full
	oldest int             // position of the oldest one in a full ring
	missed int             // events that were dropped from the ring
}

// add adds an event, in place of the oldest one if there are too many.
func (q *watchedQueue) add(e catalog.Event) {
	q.made++
	if len(q.events) < MaxBroadcast {
		q.events = append(q.events, e)
		return
	}
	q.events[q.oldest] = e
	q.oldest = (q.oldest + 1) % MaxBroadcast
	q.missed++
}

// take removes and returns what is to be published.
func (q *watchedQueue) take(worker string) catalog.Broadcast {
	b := catalog.Broadcast{
		Version: catalog.Version, Worker: worker, Missed: q.missed, Since: q.since.UnixMilli(),
		Before: q.made - len(q.events), Events: slices.Concat(q.events[q.oldest:], q.events[:q.oldest]),
	}
	q.events, q.oldest, q.missed = nil, 0, 0
	return b
}

// NewBroadcast returns the broadcast of a worker.
func NewBroadcast(worker string) *Broadcast {
	return &Broadcast{worker: worker, wake: make(chan struct{}, 1), Queues: map[string]*watchedQueue{}}
}

// Watch has the events of a queue published for some time.
func (b *Broadcast) Watch(s *redisstore.Store, life time.Duration) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	q := b.Queues[s.Name]
	if q == nil {
		q = &watchedQueue{store: s, since: time.Now()}
		b.Queues[s.Name] = q
	}
	if until := time.Now().Add(min(life, maxWatch)); until.After(q.Until) {
		q.Until = until
	}
	b.on.Store(true)
	loop.Poke(b.wake)
}

// add has an event published, if somebody watches its queue. Those of the whole worker go to all such queues.
func (b *Broadcast) add(e *Event) {
	if b == nil || !b.on.Load() {
		return
	}
	out := published(e)
	b.Mu.Lock()
	defer b.Mu.Unlock()
	for name, q := range b.Queues {
		if e.Queue == "" || e.Queue == name {
			q.add(out)
		}
	}
}

// published returns an event as it is published. Arguments are not among it.
func published(e *Event) catalog.Event {
	out := catalog.Event{
		Kind: e.Kind.String(), At: e.At.UnixMilli(), Took: e.Duration.Microseconds(), Wait: e.Wait.Milliseconds(),
		Reason: string(e.Reason),
	}
	msg := e.Message
	if e.Claim != nil {
		msg = &e.Claim.Msg
	}
	if msg != nil {
		out.ID, out.Function, out.Attempt = msg.Meta.ID, msg.Path, msg.Meta.Retried+1
	}
	if e.Err != nil {
		out.Error = errorText(e.Err)
	}
	return out
}

// errorText returns the beginning of an error's text. The error is a user's, and its method may panic.
func errorText(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = "its Error method panicked"
		}
	}()
	text = err.Error()
	return strings.ToValidUTF8(text[:min(len(text), MaxErrorText)], "")
}

// Run publishes events until ctx ends.
func (b *Broadcast) Run(ctx context.Context, log loop.Journal) {
	for {
		select {
		case <-b.wake:
		case <-ctx.Done():
			return
		}
		for more := true; more && loop.Sleep(ctx, broadcastEvery); {
			more = b.publish(ctx, log)
		}
	}
}

// publish publishes what was gathered. It reports whether somebody still watches.
func (b *Broadcast) publish(ctx context.Context, log loop.Journal) (more bool) {
	b.Mu.Lock()
	ready := map[*redisstore.Store]catalog.Broadcast{}
	now := time.Now()
	for name, q := range b.Queues {
		if len(q.events) > 0 {
			ready[q.store] = q.take(b.worker)
		}
		if now.After(q.Until) {
			delete(b.Queues, name)
		}
	}
	more = len(b.Queues) > 0
	b.on.Store(more)
	b.Mu.Unlock()
	for store, gathered := range ready {
		text, _ := json.Marshal(gathered) //nolint:errchkjson // it has no value that cannot be written
		if err := store.Broadcast(ctx, text); err != nil && ctx.Err() == nil {
			log.With("queue", store.Name).WithError(err).Debug("cannot publish events for those who watch")
		}
	}
	return more
}
