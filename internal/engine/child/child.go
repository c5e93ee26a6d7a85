package child

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/isolate"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// Child runs tasks for the worker of the parent process: it has the same functions and the same configuration.
type Child struct {
	Source    redisstore.Source
	Prefix    string
	Legacy    bool
	MaxRetry  int
	Registry  *function.Registry
	Program   Program
	IsFailure func(error) bool

	lanes     map[string]*lane.Lane // of the queues that tasks came from
	goroutine atomic.Uint64         // that runs the present task
	present   atomic.Pointer[present]
}

// present is the task that runs.
type present struct {
	claim  *lane.Claim
	report func([]byte) error
}

// Serve makes this process a child that runs tasks for its parent. setup fills in the exported fields of c. It does
// not return.
func (c *Child) Serve(setup func(*Child) error) {
	c.lanes = map[string]*lane.Lane{}
	isolate.Serve(isolate.Server{
		Setup: func() error { return setup(c) },
		Run:   c.run, Cause: causeAt, Stacks: func() string { return StackIn(DumpStacks(), c.goroutine.Load()) },
	})
}

// run runs a task.
func (c *Child) run(j isolate.Job) {
	if c.goroutine.Load() == 0 { // all tasks run on one goroutine, until one ends it
		c.goroutine.Store(GoroutineID())
	}
	var v verdict
	over := false
	// Deferred, because a handler may end this goroutine by runtime.Goexit.
	defer func() {
		if !over {
			c.goroutine.Store(0)
		}
		for _, text := range []*string{&v.Text, &v.Class, &v.Stack, &v.ResultErr} {
			*text = carried(*text)
		}
		b, err := verdictCodec.encode(v)
		if err != nil {
			b, _ = verdictCodec.encode(verdict{Text: err.Error(), Delay: -1}) // a text can be encoded
		}
		j.Answer(b)
	}()
	task, err := jobCodec.decode(j.Body)
	if err == nil {
		err = c.call(j, &task, &v)
	}
	if err != nil {
		v = verdict{Text: err.Error(), Delay: -1}
	}
	over = true
}

// call calls the function of a task, and writes the verdict. An error says why it was not called.
func (c *Child) call(j isolate.Job, task *job, v *verdict) error {
	msg, err := wire.Parse(task.Message, wire.WorkerLimits)
	if err != nil {
		return err
	}
	fn := c.Registry.Lookup(msg.Path)
	if fn == nil {
		return fmt.Errorf("delayed: function %s is not registered in the child process, only in its parent: register "+
			"it in the function that ChildMain is given", wire.OneLine(msg.Path))
	}
	claim := &lane.Claim{
		Lane: c.laneOf(task.Queue, task.Worker), Raw: task.Message, Msg: msg, Fn: fn, Started: time.Now(),
	}
	ctx, cancel := lane.ContextOf(j.Context, claim, task.Left)
	defer cancel(nil)
	c.present.Store(&present{claim, j.Report})
	defer c.present.Store(nil)
	returned := false
	defer func() {
		if !returned {
			c.judge(claim, function.NewPanic(nil), v)
		}
	}()
	result, err := c.Program.Call(ctx, claim)
	returned = true
	if err != nil {
		if errors.Is(context.Cause(ctx), lane.ErrTimeout) {
			err = &lane.TimeoutError{Limit: task.Limit, Err: err}
		}
		c.judge(claim, err, v)
		return nil
	}
	*v = verdict{OK: true, Delay: -1}
	if v.Result, err = fn.EncodeResult(result); err != nil {
		v.ResultErr = err.Error()
	}
	return nil
}

// laneOf returns the lane of a queue. It only has what handlers can see.
func (c *Child) laneOf(queue, worker string) *lane.Lane {
	if l := c.lanes[queue]; l != nil {
		return l
	}
	l := lane.New(redisstore.NewStore(c.Source, c.Prefix, queue), worker, c.Legacy)
	l.MaxRetry, l.Reports = c.MaxRetry, c
	c.lanes[queue] = l
	return l
}

// SendProgress sends a progress report to the parent.
func (c *Child) SendProgress(claim *lane.Claim, p wire.Progress) error {
	now := c.present.Load()
	if now == nil || now.claim != claim {
		return errors.New("delayed: Progress after the handler has returned")
	}
	p.Note = carried(p.Note)
	b, err := progressCodec.encode(p)
	if err != nil {
		return err
	}
	return now.report(b)
}

// judge asks the functions of the user about an error, and writes the verdict. If one panics or calls runtime.Goexit,
// the error counts as a failure like any other.
func (c *Child) judge(claim *lane.Claim, err error, into *verdict) {
	v := verdict{Delay: -1}
	returned := false
	defer func() {
		switch p := recover(); {
		case p != nil:
			v = verdict{Delay: -1, Text: fmt.Sprintf("delayed: the error of the handler, a %T, or a function that was "+
				"asked about it panicked: %v", err, p)}
		case !returned:
			v = verdict{Delay: -1, Text: Exited(err).Error()}
		}
		*into = v
	}()
	v.Text, v.Stack = err.Error(), StackOf(err)
	var timeout *lane.TimeoutError
	if errors.As(err, &timeout) {
		v.Text = timeout.Err.Error() // the parent says the rest
	}
	var class interface{ ErrorType() string }
	if errors.As(err, &class) {
		v.Class = class.ErrorType()
	}
	says, wait := lane.Said(err)
	v.Says, v.Wait = uint8(says), wait
	path, misfit := c.Program.Misfit(err)
	v.Misfit = misfit && path == claim.Fn.Path()
	if says == lane.DecisionNone {
		v.NotFailure = c.IsFailure != nil && !c.IsFailure(err)
		if backoff := claim.Fn.Policy.Backoff; backoff != nil {
			v.Delay = max(backoff(claim.Msg.Meta.Retried, err), 0)
		}
	}
	returned = true
}
