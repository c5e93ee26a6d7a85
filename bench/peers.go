package main

import "errors"

// peer is a task queue under test.
type peer struct {
	name string
	open func(addr string) (queue, error)
}

var peers = []peer{{"delayed", openDelayed}, {"asynq", openAsynq}}

// queue is one queue of a peer. Its task carries an int64 and a short string.
type queue interface {
	// enqueue adds one task and returns once Redis has it. It is called concurrently.
	enqueue(i int64) error
	// enqueueMany adds n tasks in calls of 1,000, or returns errNone if the peer has no such call.
	enqueueMany(n int) error
	// work starts a worker whose handler decodes the task and calls handled.
	work(concurrency int, handled func(int64)) (stop func(), err error)
	close()
}

var errNone = errors.New("no such call")

// text is the string of every task.
const text = "hello-task"
