package site

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// jobs are actions on whole lists of tasks, which go on after the request that has started them. Only this process
// knows them; what they did is in the audit log.
type jobs struct {
	mu     sync.Mutex
	wg     sync.WaitGroup
	closed bool
	list   []*Job // oldest first
}

// UnknownJob explains why there may be no job with an id.
const UnknownJob = "This process of the dashboard knows no such job. A process remembers its own last hundred, until " +
	"it starts again. If several processes serve the dashboard, another one may know it: load the page again, or let " +
	"your balancer keep each user with one process. The audit log has what was done, by jobs of all of them."

// The bounds of jobs.
const (
	MaxRunning = 4   // jobs at once
	MaxJobs    = 100 // that are remembered, with those that run
)

// Order is what a job has to do.
type Order struct {
	Queue  string
	State  state.Task
	Filter inspect.Filter
	What   string // in words: "Delete"
	Action inspect.Action
	By     string // the user
}

// Job is an action on all tasks of a list that a filter matches.
type Job struct {
	Order

	ID      string
	Started time.Time
	stop    context.CancelFunc

	mu     sync.Mutex
	status JobStatus
}

// JobStatus is how far a job is.
type JobStatus struct {
	inspect.Report

	Total int // tasks in the list when it began
	// Stop is who has stopped it; "" if nobody has.
	Stop  string
	Ended time.Time // zero while it runs
	Err   error     // why it has stopped early
}

// Phase is the status in one word.
func (j *JobStatus) Phase() string {
	switch {
	case j.Ended.IsZero() && j.Stop != "":
		return "stopping"
	case j.Ended.IsZero():
		return "running"
	case j.Err != nil:
		return "broken off"
	case j.Stop != "":
		return "canceled"
	}
	return "done"
}

// Failures is the number of tasks with which it went wrong.
func (j *JobStatus) Failures() int { return len(j.Failed) + j.FailedMore }

// Now returns how far the job is.
func (j *Job) Now() JobStatus {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.status
}

// Start begins a job, which ends early when ctx does, and returns it. The inspector acts in the name of the user.
func (all *jobs) Start(ctx context.Context, ins *inspect.Inspector, o Order) (*Job, error) {
	first, err := ins.Tasks(ctx, o.Queue, inspect.Query{State: o.State, Limit: 1, ScanLimit: 1})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	j := &Job{Order: o, ID: rand.Text()[:12], Started: time.Now(), stop: stop}
	j.status.Total = first.Total
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.closed || all.count() >= MaxRunning {
		stop()
		return nil, &HTTPError{
			http.StatusTooManyRequests, "four jobs are running already: wait until one has ended, or cancel one",
		}
	}
	if len(all.list) == MaxJobs {
		oldest := slices.IndexFunc(all.list, func(j *Job) bool { s := j.Now(); return !s.Ended.IsZero() })
		all.list = slices.Delete(all.list, oldest, oldest+1) // fewer than those run
	}
	all.list = append(all.list, j)
	all.wg.Go(func() { j.run(ctx, ins) })
	return j, nil
}

// run does what the job is for. It stops between pages, so that it never leaves open what was done to a task, and that
// all that was done is in the audit log.
func (j *Job) run(ctx context.Context, ins *inspect.Inspector) {
	defer j.stop()
	query := inspect.Query{State: j.State, Filter: j.Filter}
	report, err := ins.DoAll(context.WithoutCancel(ctx), j.Queue, j.Action, query, func(r inspect.Report) bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.status.Report = r
		return ctx.Err() == nil
	})
	j.mu.Lock()
	defer j.mu.Unlock()
	j.status.Report, j.status.Err, j.status.Ended = report, err, time.Now()
	if j.status.Stop == "" && ctx.Err() != nil {
		j.status.Stop = "the end of the dashboard"
	}
}

// Get returns the job with an id; nil if there is none.
func (all *jobs) Get(id string) *Job {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, j := range all.list {
		if j.ID == id {
			return j
		}
	}
	return nil
}

// Running returns how many jobs run.
func (all *jobs) Running() int {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.count()
}

// count is running for callers that hold the lock.
func (all *jobs) count() (n int) {
	for _, j := range all.list {
		if now := j.Now(); now.Ended.IsZero() {
			n++
		}
	}
	return n
}

// Recent returns all jobs, the latest first.
func (all *jobs) Recent() []*Job {
	all.mu.Lock()
	defer all.mu.Unlock()
	list := slices.Clone(all.list)
	slices.Reverse(list)
	return list
}

// Cancel stops a job after the page that it is at. It reports whether the job was still running.
func (j *Job) Cancel(by string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.status.Ended.IsZero() {
		return false
	}
	if j.status.Stop == "" {
		j.status.Stop = by
	}
	j.stop()
	return true
}

// Wait waits for all jobs, and lets none begin afterwards.
func (all *jobs) Wait() {
	all.mu.Lock()
	all.closed = true
	all.mu.Unlock()
	all.wg.Wait()
}
