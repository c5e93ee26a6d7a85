package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/lua"
)

var delayedPeer = &peer{
	name:    "delayed",
	about:   "default settings, every guarantee on; arguments in MessagePack",
	version: func() (string, error) { return "(this tree)", nil },
	open:    openDelayed,
}

// queueName is the name of the first queue.
const queueName = "bench0"

var errFailing = errors.New("this task always fails")

// tomorrow is when scheduled tasks are due.
var tomorrow = time.Now().Add(24 * time.Hour)

// handle is the handler of this process's worker.
var handle func(number int64, text string)

// The functions of tasks; those of the forms are named after them.
var (
	plainFunc   = delayed.Func(func(number int64, text string) { handle(number, text) }, delayed.Name("bench.task"))
	failingFunc = delayed.Func(func(number int64, text string) error {
		handle(number, text)
		return errFailing
	}, delayed.Name("bench.failing"), delayed.MaxRetry(0))
	retriedFunc = delayed.Func(func(ctx context.Context, number int64, text string) error {
		if delayed.TaskFromContext(ctx).Attempt() == 1 {
			return delayed.RetryIn(0, errFailing)
		}
		handle(number, text)
		return nil
	}, delayed.Name("bench.retried"))
	gatheredFunc = delayed.Func(func(numbers ...int64) {
		for _, n := range numbers {
			handle(n, baseText)
		}
	}, delayed.Name("bench.gathered"))
)

type delayedQueue struct {
	addr    string
	archive int // ArchiveMax of workers
	rdb     *delayed.Store
	names   []string
	queues  []*delayed.Queue
}

func openDelayed(addr string) (queue, error) {
	rdb, err := delayed.Dial("redis://" + addr)
	if err != nil {
		return nil, err
	}
	return &delayedQueue{addr: addr, rdb: rdb}, nil
}

func (d *delayedQueue) set(r *request) {
	d.archive = 1_000_000
	if r.Archive > 0 {
		d.archive = r.Archive
	}
	for i := len(d.queues); i < max(1, r.Queues); i++ {
		q, err := delayed.OpenQueue("bench"+strconv.Itoa(i), d.rdb, delayed.QueueConfig{})
		must(err)
		d.names, d.queues = append(d.names, q.Name()), append(d.queues, q)
	}
}

func (d *delayedQueue) queue() *delayed.Queue {
	if len(d.queues) == 1 {
		return d.queues[0]
	}
	return d.queues[rand.IntN(len(d.queues))]
}

func (d *delayedQueue) enqueue(number int64, text string) error {
	_, err := d.queue().Delay(plainFunc, number, text)
	return err
}

func (d *delayedQueue) schedule(due time.Time, number int64, text string) error {
	_, err := d.queue().With(delayed.At(due)).Delay(plainFunc, number, text)
	return err
}

func (d *delayedQueue) enqueueAs(form string, i int64, text string) error {
	q, fn := d.queue(), plainFunc
	switch form {
	case "grouped":
		_, err := q.With(delayed.Group("group "+strconv.FormatInt(i%groupKeys, 10))).Delay(gatheredFunc, i)
		return err
	case "gathered":
		policy := delayed.GatherPolicy{MaxSize: 5000, Grace: time.Second}
		_, err := q.With(delayed.Group("all"), delayed.Gather(policy)).Delay(gatheredFunc, i)
		return err
	case "scheduled":
		q = q.With(delayed.At(tomorrow.Add(time.Duration(i) * time.Millisecond)))
	case "unique":
		q = q.With(delayed.Unique(time.Hour))
	case "debounced":
		q = q.With(delayed.Debounce(time.Hour), delayed.UniqueKey(strconv.FormatInt(i%debounceKeys, 10), 2*time.Hour))
	case "failing":
		fn = failingFunc
	case "retried":
		fn = retriedFunc
	default:
		return errNone
	}
	_, err := q.Delay(fn, i, text)
	return err
}

func (d *delayedQueue) enqueueMany(number int64, texts []string) error {
	calls := make([]*delayed.Task, len(texts))
	for i, text := range texts {
		calls[i] = delayed.Call(plainFunc, number, text)
	}
	_, err := d.queue().DelayMany(context.Background(), calls...)
	return err
}

func (d *delayedQueue) work(concurrency int, h func(int64, string)) error {
	handle = h
	w, err := delayed.NewWorker(d.rdb, delayed.WorkerConfig{
		Queues: delayed.Strict(d.names), Concurrency: concurrency, ArchiveMax: d.archive,
		Logger: delayed.SlogLogger(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	if err := w.Register(plainFunc, failingFunc, retriedFunc, gatheredFunc); err != nil {
		return err
	}
	go func() { _ = w.Run(context.Background()) }() // until the process ends
	return nil
}

// pretend connects and registers so many idle workers, each with one connection only, so that thousands fit into a
// process. They send what real ones send until this process ends: registration, heartbeats, looks for what is due, and
// waits in between. They do not sweep.
func (d *delayedQueue) pretend(workers int, life time.Duration) error {
	load := func(name string, keys int) *redis.Script {
		return redis.NewScript(keys, lua.Source(name))
	}
	register, beat, look := load("register", 3), load("beat", 3), load("check", 6)
	return fanOut(manyProducers, workers, func(i int) error {
		conn, err := redis.Dial("tcp", d.addr)
		if err != nil {
			return err
		}
		id := fmt.Sprintf("pretended-%05d", i)
		heartbeat, processing := queueName+"_worker:"+id, queueName+"_processing:"+id
		if _, err := register.Do(conn, heartbeat, queueName+"_workers", processing, life.Milliseconds(), id,
			"pretended"); err != nil {
			return err
		}
		go func() {
			period := life * 9 / 80 // a heartbeat comes after two of them
			wait := time.Duration(rand.Float64() * float64(2*period))
			for turn := 0; err == nil; turn++ { // until the server has ended
				if _, err = conn.Do("BLPOP", queueName+"_rewait:"+id, wait.Seconds()); err != nil {
					return
				}
				if turn%2 == 0 {
					_, err = beat.Do(conn, heartbeat, processing, queueName+"_control", life.Milliseconds(), 0, 1)
				} else {
					_, err = look.Do(conn, queueName, queueName+"_scheduled", queueName+"_retry", queueName+"_parked",
						queueName+"_groups", queueName+"_suspects")
				}
				wait = period
			}
		}()
		return nil
	})
}
