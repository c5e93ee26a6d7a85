package main

import (
	"context"
	"encoding/json"
	"io"
	"log"

	"github.com/hibiken/asynq"
)

type asynqQueue struct {
	addr   asynq.RedisClientOpt
	client *asynq.Client
}

// asynqPayload is the task's payload, in the encoding that asynq's documentation shows.
type asynqPayload struct {
	A int64
	B string
}

func openAsynq(addr string) (queue, error) {
	opt := asynq.RedisClientOpt{Addr: addr}
	return &asynqQueue{opt, asynq.NewClient(opt)}, nil
}

func (a *asynqQueue) enqueue(i int64) error {
	payload, err := json.Marshal(asynqPayload{i, text})
	if err != nil {
		return err
	}
	_, err = a.client.Enqueue(asynq.NewTask("noop", payload))
	return err
}

func (a *asynqQueue) enqueueMany(int) error { return errNone }

func (a *asynqQueue) work(concurrency int, handled func(int64)) (func(), error) {
	log.SetOutput(io.Discard)
	s := asynq.NewServer(a.addr, asynq.Config{Concurrency: concurrency, LogLevel: asynq.FatalLevel})
	mux := asynq.NewServeMux()
	mux.HandleFunc("noop", func(_ context.Context, t *asynq.Task) error {
		var p asynqPayload
		if err := json.Unmarshal(t.Payload(), &p); err != nil {
			return err
		}
		handled(p.A)
		return nil
	})
	return s.Shutdown, s.Start(mux)
}

func (a *asynqQueue) close() { _ = a.client.Close() }
