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
	// worker publishes at most the latest 200 in a tenth of a second, and others may be lost on the way.
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
// counts them, except those before the first and after the last that it yields of a worker. If Redis
// cannot be asked, Watch yields an error and goes on, but it ends when the handle is closed. It finds a new queue
// within three seconds. Workers written in Python publish events of tasks, and not of themselves.
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
		news, last := make(chan news), places{}
		followed := map[string]bool{}
		find := func() error {
			stores, err := ins.stores(ctx, queues)
			for _, s := range stores {
				if !followed[s.Name] {
					followed[s.Name] = true
					following.Go(func() { ins.follow(ctx, s, news) })
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
			case n := <-news:
				if !n.yield(yield, last, ins.cfg.Redact) || errors.Is(n.err, delayed.ErrClosed) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// news is what a worker has published of a queue, or an error.
type news struct {
	queue string
	text  string
	err   error
}

// places are the last places among the events of workers, by queue and worker.
type places map[[2]string]eventPlace

// eventPlace is a place among the events of a worker: how many it has had since it was asked for them.
type eventPlace struct {
	since  int64
	events int
}

// maxPlaces bounds the workers that are remembered: those of a watch that lasts for months come and go.
const maxPlaces = 10_000

// missed notes what was received, and returns how many events before it were not.
func (p places) missed(queue string, b *catalog.Broadcast) int {
	key := [2]string{queue, b.Worker}
	n := b.Missed
	if last, known := p[key]; known && last.since == b.Since {
		n = max(n, b.Before-last.events)
	} else if len(p) >= maxPlaces {
		clear(p)
	}
	p[key] = eventPlace{b.Since, b.Before + len(b.Events)}
	return n
}

// yield yields the events, with what redact leaves of them; it may be nil. It reports false if the loop has ended.
func (n *news) yield(yield func(Event, error) bool, last places, redact func(*Contents)) bool {
	if n.err != nil {
		return yield(Event{}, n.err)
	}
	var b catalog.Broadcast
	if json.Unmarshal([]byte(n.text), &b) != nil || b.Version != catalog.Version {
		return true // a later version, or another program
	}
	missed := last.missed(n.queue, &b)
	for _, e := range b.Events {
		seen := Contents{Function: e.Function, Error: e.Error}
		if redact != nil {
			redact(&seen)
		}
		if !yield(Event{
			Kind: kindsByName[e.Kind], At: time.UnixMilli(e.At), Queue: n.queue, Worker: b.Worker,
			ID: e.ID, Function: seen.Function, Attempt: e.Attempt, Took: time.Duration(e.Took) * time.Microsecond,
			Wait: time.Duration(e.Wait) * time.Millisecond, Reason: e.Reason, Error: seen.Error, Missed: missed,
		}, nil) {
			return false
		}
		missed = 0
	}
	return true
}

// follow asks the workers of a queue for events, and sends on what they publish, until ctx ends.
func (ins *Inspector) follow(ctx context.Context, s *redisstore.Store, to chan<- news) {
	messages, unsubscribe := ins.signals.SubscribeEvents(s) //nolint:contextcheck // its connection serves others
	defer unsubscribe()
	again := time.NewTicker(watchEvery)
	defer again.Stop()
	for {
		out := news{queue: s.Name}
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
