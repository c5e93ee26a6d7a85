package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"strconv"
	"time"

	"github.com/hibiken/asynq"
)

var asynqPeer = &peer{
	name:    "asynq",
	about:   "default settings; payload in JSON; it polls an empty queue once a second",
	version: func() (string, error) { return moduleVersion("github.com/hibiken/asynq") },
	open:    openAsynq,
	share:   0.1,
	polls:   true,
}

type asynqQueue struct {
	addr   asynq.RedisClientOpt
	client *asynq.Client
	config asynq.Config // of workers
}

// asynqPayload is the task's payload, in the encoding that asynq's documentation shows.
type asynqPayload struct {
	A int64
	B string
}

func openAsynq(addr string) (queue, error) {
	opt := asynq.RedisClientOpt{Addr: addr}
	return &asynqQueue{addr: opt, client: asynq.NewClient(opt)}, nil
}

// set lets a failed task wait for nothing but the next look at the retry set, every 10 ms in place of 5 s, if r asks
// for it.
func (a *asynqQueue) set(r *request) {
	if r.RetryNow {
		a.config.RetryDelayFunc = func(int, error, *asynq.Task) time.Duration { return 0 }
		a.config.DelayedTaskCheckInterval = 10 * time.Millisecond
	}
}

func (a *asynqQueue) enqueue(number int64, text string) error { return a.add("task", number, text) }

func (a *asynqQueue) schedule(due time.Time, number int64, text string) error {
	return a.add("task", number, text, asynq.ProcessAt(due))
}

// enqueueAs enqueues unique tasks in place of debounced ones: of those that come while one waits, all but the first are
// refused, where Debounce keeps the last.
func (a *asynqQueue) enqueueAs(form string, i int64, text string) error {
	var options []asynq.Option
	switch form {
	case "retried":
		return a.add("retried", i, text)
	case "failing":
		return a.add("failing", i, text, asynq.MaxRetry(0))
	case "scheduled":
		options = append(options, asynq.ProcessAt(tomorrow.Add(time.Duration(i)*time.Millisecond)))
	case "unique":
		options = append(options, asynq.Unique(time.Hour))
	case "debounced":
		options = append(options, asynq.ProcessIn(time.Hour), asynq.Unique(2*time.Hour))
		i %= debounceKeys
	case "grouped":
		options = append(options, asynq.Group("group "+strconv.FormatInt(i%groupKeys, 10)))
	default:
		return errNone
	}
	err := a.add("task", i, text, options...)
	if form == "debounced" && errors.Is(err, asynq.ErrDuplicateTask) {
		return nil
	}
	return err
}

// add enqueues a task for one of the handlers.
func (a *asynqQueue) add(handler string, number int64, text string, options ...asynq.Option) error {
	payload, err := json.Marshal(asynqPayload{number, text})
	if err != nil {
		return err
	}
	_, err = a.client.Enqueue(asynq.NewTask(handler, payload), options...)
	return err
}

func (a *asynqQueue) enqueueMany(int64, []string) error { return errNone }

func (a *asynqQueue) work(concurrency int, handle func(int64, string)) error {
	log.SetOutput(io.Discard)
	config := a.config
	config.Concurrency, config.LogLevel = concurrency, asynq.FatalLevel
	s := asynq.NewServer(a.addr, config)
	mux := asynq.NewServeMux()
	call := func(t *asynq.Task) error {
		var p asynqPayload
		if err := json.Unmarshal(t.Payload(), &p); err != nil {
			return err
		}
		handle(p.A, p.B)
		return nil
	}
	mux.HandleFunc("task", func(_ context.Context, t *asynq.Task) error { return call(t) })
	mux.HandleFunc("failing", func(_ context.Context, t *asynq.Task) error {
		return errors.Join(call(t), errFailing)
	})
	mux.HandleFunc("retried", func(ctx context.Context, t *asynq.Task) error {
		if retried, _ := asynq.GetRetryCount(ctx); retried == 0 {
			return errFailing
		}
		return call(t)
	})
	return s.Start(mux)
}
