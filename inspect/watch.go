package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/catalog"
	"github.com/godelayed/delayed/internal/redisstore"
)

// Event is something that has happened in a worker. The arguments of its task are not in it: Inspector.Task has them.
// Config.Redact is called with its Function and Error, and nothing else.
type Event struct {
	Kind   event.Kind
	At     time.Time // by the clock of the worker's host
	Queue  string
	Worker string // id

	// Of the task that the event is about; zero if it is about a worker.
	ID       string
	Function string // path
	Attempt  int    // 1 for the first

	Took   time.Duration // how long the handler ran
	Wait   time.Duration // until the task is tried again; with event.TaskStarted, since it was enqueued
	Reason string
	Error  string // the first 500 bytes
	// Missed is how many events of this worker and queue there were just before this one that Watch does not yield: a
	// worker tells of at most the latest 200 in a tenth of a second, and others may be lost on the way.
	Missed int
}

const (
	// watchLife is how long one request to workers holds.
	watchLife = 15 * time.Second
	// watchEvery is how often it is repeated, and how often Watch looks for new queues.
	watchEvery = 3 * time.Second
)

// kindsByName maps the names of the kinds of events to them.
var kindsByName = func() map[string]event.Kind {
	m := map[string]event.Kind{}
	for k := event.Kind(1); k.String() != event.Kind(0).String(); k++ {
		m[k.String()] = k
	}
	return m
}()

// Watch yields what happens in the workers of the given queues from now on, or of all queues if none is given, until
// ctx ends or the loop does. Workers publish events only while somebody watches. Those of one worker are in order.
// Events may be lost with a connection, which is made anew every few minutes, or if the loop is slow: Event.Missed
// counts them, except those after which nothing more is heard of the worker, or before which nothing was. If Redis
// cannot be asked, Watch yields an error and goes on, but it ends when the handle is closed. It finds a new queue
// within three seconds. Workers written in Python tell of tasks, and not of themselves.
func (ins *Inspector) Watch(ctx context.Context, queues ...string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if _, err := ins.stores(ctx, queues); err != nil {
			yield(Event{}, err)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var following sync.WaitGroup
		defer following.Wait()
		defer cancel()
		told, heard := make(chan told), listening{}
		followed := map[string]bool{}
		find := func() error {
			stores, err := ins.stores(ctx, queues)
			for _, s := range stores {
				if !followed[s.Name] {
					followed[s.Name] = true
					following.Go(func() { ins.follow(ctx, s, told) })
				}
			}
			return err
		}
		again := time.NewTicker(watchEvery)
		defer again.Stop()
		err := find()
		for {
			if err != nil && ctx.Err() == nil && !yield(Event{}, err) || errors.Is(err, delayed.ErrClosed) {
				return
			}
			err = nil
			select {
			case <-again.C:
				if len(queues) == 0 {
					err = find()
				}
			case t := <-told:
				if !t.yield(yield, heard, ins.cfg.Redact) || errors.Is(t.err, delayed.ErrClosed) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// told is what a worker has told of a queue, or an error.
type told struct {
	queue string
	text  string
	err   error
}

// listening is what was heard of workers last, by queue and worker.
type listening map[[2]string]heard

// heard is a place among the events of a worker: how many it has had since it was asked for them.
type heard struct {
	since  int64
	events int
}

// maxHeard bounds the workers that are remembered: those of a watch that lasts for months come and go.
const maxHeard = 10_000

// missed notes what was heard, and returns how many events before it were not heard of.
func (l listening) missed(queue string, b *catalog.Broadcast) int {
	key := [2]string{queue, b.Worker}
	n := b.Missed
	if last, known := l[key]; known && last.since == b.Since {
		n = max(n, b.Before-last.events)
	} else if len(l) >= maxHeard {
		clear(l)
	}
	l[key] = heard{b.Since, b.Before + len(b.Events)}
	return n
}

// yield yields the events, with what redact leaves of them; it may be nil. It reports false if the loop has ended.
func (t *told) yield(yield func(Event, error) bool, l listening, redact func(*Contents)) bool {
	if t.err != nil {
		return yield(Event{}, t.err)
	}
	var b catalog.Broadcast
	if json.Unmarshal([]byte(t.text), &b) != nil || b.Version != catalog.Version {
		return true // a later version, or another program
	}
	missed := l.missed(t.queue, &b)
	for _, e := range b.Events {
		seen := Contents{Function: e.Function, Error: e.Error}
		if redact != nil {
			redact(&seen)
		}
		if !yield(Event{
			Kind: kindsByName[e.Kind], At: time.UnixMilli(e.At), Queue: t.queue, Worker: b.Worker,
			ID: e.ID, Function: seen.Function, Attempt: e.Attempt, Took: time.Duration(e.Took) * time.Microsecond,
			Wait: time.Duration(e.Wait) * time.Millisecond, Reason: e.Reason, Error: seen.Error, Missed: missed,
		}, nil) {
			return false
		}
		missed = 0
	}
	return true
}

// follow asks the workers of a queue for events, and sends on what they tell, until ctx ends.
func (ins *Inspector) follow(ctx context.Context, s *redisstore.Store, to chan<- told) {
	messages, unsubscribe := ins.signals.SubscribeEvents(s) //nolint:contextcheck // its connection serves others
	defer unsubscribe()
	again := time.NewTicker(watchEvery)
	defer again.Stop()
	for {
		out := told{queue: s.Name}
		select {
		case out.text = <-messages:
		case <-again.C:
		case <-ctx.Done():
			return
		}
		if out.text == "" { // the subscription holds from now on, or it is time to ask again
			if out.err = s.RequestEvents(ctx, watchLife); out.err == nil {
				continue
			}
		}
		select {
		case to <- out:
		case <-ctx.Done():
			return
		}
	}
}
