package main

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/godelayed/delayed"
)

func init() {
	register(&peer{
		name:    "delayed",
		about:   "default settings, every guarantee on; arguments in MessagePack",
		version: func() (string, error) { return "(this tree)", nil },
		open:    openDelayed,
	})
}

// delayedTask is the function that tasks call. A driver has one worker's handler, or one for all its workers.
var delayedTask = delayed.Func(func(number int64, text string) { delayedHandle(number, text) },
	delayed.Name("bench.task"))

// delayedGrowing is the function of grouped tasks. Each value is a task for bench.
var delayedGrowing = delayed.Func(func(numbers ...int64) {
	for _, n := range numbers {
		delayedHandle(n, baseText)
	}
}, delayed.Name("bench.growing"))

// delayedFailing is the function of failing tasks.
var delayedFailing = delayed.Func(func(number int64, text string) error {
	delayedHandle(number, text)
	return errFailing
}, delayed.Name("bench.failing"), delayed.MaxRetry(0))

// delayedRetried and delayedWaiting are the functions of tasks that fail on their first run.
var (
	delayedRetried = failsFirst("bench.retried", 0)
	delayedWaiting = failsFirst("bench.waiting", time.Millisecond)
)

// failsFirst returns a function that is run again after a wait.
func failsFirst(name string, wait time.Duration) any {
	return delayed.Func(func(ctx context.Context, number int64, text string) error {
		if delayed.TaskFromContext(ctx).Attempt() == 1 {
			return delayed.RetryIn(wait, errFailing)
		}
		delayedHandle(number, text)
		return nil
	}, delayed.Name(name))
}

// delayedSnoozed is the function of tasks that are put off.
var delayedSnoozed = delayed.Func(func(number int64, text string) error {
	delayedHandle(number, text)
	return delayed.Snooze(24 * time.Hour)
}, delayed.Name("bench.snoozed"))

// delayedParked is the function of tasks that only the workers after unpark know.
var delayedParked = delayed.Func(func(number int64, text string) { delayedHandle(number, text) },
	delayed.Name("bench.parked"))

var errFailing = errors.New("this task always fails")

// lockLife is how long the locks of lapsing tasks last.
const lockLife = 2 * time.Second

// tomorrow is when scheduled tasks are due.
var tomorrow = time.Now().Add(24 * time.Hour)

var delayedHandle func(number int64, text string)

type delayedQueue struct {
	addr    string
	archive int  // ArchiveMax of workers
	parked  bool // workers know delayedParked
	rdb     *delayed.Redis
	names   []string
	queues  []*delayed.Queue
}

func openDelayed(addr string) (queue, error) {
	rdb, err := delayed.Dial("redis://" + addr)
	if err != nil {
		return nil, err
	}
	d := &delayedQueue{addr: addr, archive: 1_000_000, rdb: rdb}
	return d, d.spread(1)
}

// spread makes d use so many queues.
func (d *delayedQueue) spread(n int) error {
	d.names, d.queues = nil, nil
	for i := range n {
		q, err := delayed.OpenQueue(d.rdb, delayed.QueueConfig{Name: "bench" + strconv.Itoa(i)})
		if err != nil {
			return err
		}
		d.names, d.queues = append(d.names, q.Name()), append(d.queues, q)
	}
	return nil
}

// limit bounds the archive of the workers that follow.
func (d *delayedQueue) limit(archive int) { d.archive = archive }

func (d *delayedQueue) unpark() { d.parked = true }

func (d *delayedQueue) queue() *delayed.Queue {
	if len(d.queues) == 1 {
		return d.queues[0]
	}
	return d.queues[rand.IntN(len(d.queues))]
}

func (d *delayedQueue) enqueue(number int64, text string) error {
	_, err := d.queue().Delay(delayedTask, number, text)
	return err
}

func (d *delayedQueue) schedule(due time.Time, number int64, text string) error {
	_, err := d.queue().With(delayed.At(due)).Delay(delayedTask, number, text)
	return err
}

func (d *delayedQueue) enqueueAs(form string, i int64, text string) error {
	q, ctx := d.queue(), context.Background()
	if form == "Python" {
		_, err := q.Enqueue(ctx, delayed.NewPyTask("bench:task", []any{i, text}, nil))
		return err
	}
	var option delayed.Option
	switch form {
	case "scheduled":
		option = delayed.At(tomorrow.Add(time.Duration(i) * time.Millisecond))
	case "unique":
		option = delayed.Unique(time.Hour)
	case "keyed":
		option = delayed.UniqueKey("key "+strconv.FormatInt(i, 10), time.Hour)
	case "debounced":
		q = q.With(delayed.Debounce(time.Hour))
		option = delayed.UniqueKey("key "+strconv.FormatInt(i%debounceKeys, 10), 2*time.Hour)
	case "grouped":
		option = delayed.Group("group " + strconv.FormatInt(i%groupKeys, 10))
		_, err := q.With(option).Delay(delayedGrowing, i)
		return err
	case "failing":
		_, err := q.Delay(delayedFailing, i, text)
		return err
	case "retried":
		_, err := q.Delay(delayedRetried, i, text)
		return err
	case "waiting":
		_, err := q.Delay(delayedWaiting, i, text)
		return err
	case "snoozed":
		_, err := q.Delay(delayedSnoozed, i, text)
		return err
	case "parked":
		_, err := q.Delay(delayedParked, i, text)
		return err
	case "lapsing":
		option = delayed.UniqueKey("key "+strconv.FormatInt(i, 10), lockLife)
	case "gathered":
		policy := delayed.GatherPolicy{MaxSize: 5000, Grace: time.Second}
		_, err := q.With(delayed.Group("all"), delayed.Gather(policy)).Delay(delayedGrowing, i)
		return err
	default:
		return errNone
	}
	_, err := q.With(option).Delay(delayedTask, i, text)
	return err
}

func (d *delayedQueue) enqueueMany(number int64, texts []string) error {
	calls := make([]*delayed.Task, len(texts))
	for i, text := range texts {
		calls[i] = delayed.Call(delayedTask, number, text)
	}
	_, err := d.queue().DelayMany(context.Background(), calls...)
	return err
}

func (d *delayedQueue) work(concurrency int, handle func(int64, string)) (func(), error) {
	delayedHandle = handle
	w, err := delayed.NewWorker(d.rdb, delayed.WorkerConfig{
		Queues: delayed.Strict(d.names), Concurrency: concurrency, ArchiveMax: d.archive,
		Logger: delayed.SlogLogger(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	functions := []any{delayedTask, delayedGrowing, delayedFailing, delayedRetried, delayedWaiting, delayedSnoozed}
	if d.parked {
		functions = append(functions, delayedParked)
	}
	if err := w.Register(functions...); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.Run(ctx)
	}()
	return func() { cancel(); <-done }, nil
}

func (d *delayedQueue) close() { d.rdb.Close() }
