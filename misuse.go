package delayed

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed/internal/wire"
)

// Errors of handles that were never made. Methods that return no error panic with them.
var (
	errNilContext = errors.New("delayed: the context is nil: pass context.Background() where there is no other")
	errNoRedis    = errors.New("delayed: the *Redis is nil or zero: pass what Dial, FromPool or FromSource returned")

	errNoRef      = fmt.Errorf("%w: the *Ref is nil or zero; did Delay return an error?", ErrNoID)
	errNoTask     = fmt.Errorf("%w: the *Task is nil or zero: make it with Call, NewGoTask or NewPyTask", ErrArguments)
	errNoReceived = errors.New("delayed: the *Task is nil: TaskFromContext returns nil outside of a handler")
	errNoWorker   = errors.New("delayed: the *Worker is nil or zero: make it with NewWorker")
	errNoSweeper  = errors.New("delayed: the *Sweeper is nil or zero: make it with NewSweeper")
	errNoSchedule = errors.New("delayed: the *Scheduler is nil or zero: make it with NewScheduler")
	errNoPeriodic = errors.New("delayed: the *Periodic is nil or zero: make it with Queue.Periodic")
	errNoControl  = errors.New("delayed: the *WorkerControl is nil or zero: make it with Queue.Worker")
)

// must panics with an error where a function cannot return it.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// checkContext returns an error if there is no context.
func checkContext(ctx context.Context) error {
	if ctx == nil {
		return errNilContext
	}
	return nil
}

// check returns an error if r was not made by a constructor.
func (r *Redis) check() error {
	if r == nil || r.calls == nil || r.loops == nil {
		return errNoRedis
	}
	return nil
}

// made returns an error if q was not made by a constructor.
func (q *Queue) made() error {
	if q == nil || q.store == nil {
		return errNoQueue
	}
	return nil
}

// check returns an error if Redis cannot be asked: q was not made by a constructor, or there is no context.
func (q *Queue) check(ctx context.Context) error {
	if err := q.made(); err != nil {
		return err
	}
	return checkContext(ctx)
}

// check returns an error if Redis cannot be asked for entries.
func (p *Periodic) check(ctx context.Context) error {
	if p == nil || p.queue == nil {
		return errNoPeriodic
	}
	return checkContext(ctx)
}

// check returns an error if w was not made by NewWorker.
func (w *Worker) check() error {
	if w == nil || w.engine == nil {
		return errNoWorker
	}
	return nil
}

// checkLogger returns an error for a logger that would panic at its first line.
func checkLogger(config string, l Logger) error {
	entry, isEntry := l.(*logrus.Entry)
	if l != nil && (wire.IsNil(l) || isEntry && entry.Logger == nil) {
		return fmt.Errorf("delayed: %s.Logger is a nil or zero %T: expected one that logs, or nothing for the default",
			config, l)
	}
	return nil
}

// tooShort says what is wrong with a duration that was meant in another unit: Retention(60000) is 60 µs.
func tooShort(d time.Duration) (want string, wrong bool) {
	return "at least 1ms, or a unit such as time.Second behind the number", d > 0 && d < time.Millisecond
}

// checkDuration is tooShort for a field of a configuration.
func checkDuration(field string, d time.Duration) error {
	if want, wrong := tooShort(d); wrong {
		return fmt.Errorf("delayed: %s is %v: expected %s", field, d, want)
	}
	return nil
}

// noArgument says what an argument is that no function can take, and where it belongs; "" if it may be one.
func noArgument(a any) string {
	switch a := a.(type) {
	case *Ref:
		return "a *Ref, which is no argument: pass its ID()"
	case *Queue, *Redis, *Worker, *Task, *Function:
		name := strings.Replace(reflect.TypeOf(a).String(), "delayed.", "", 1)
		return fmt.Sprintf("a %s, which cannot travel: let the worker have its own", name)
	case Option:
		name, _, _ := strings.Cut(a.String(), "(") // what follows may be secret
		return fmt.Sprintf("the option %s, which is no argument: give it to Queue.With, as in "+
			"q.With(delayed.%s(…)).Delay(…)", name, name)
	case FuncOption:
		name, _, _ := strings.Cut(a.String(), "(")
		return fmt.Sprintf("the option %s, which is no argument: give it to Func with the function, as in "+
			"delayed.Func(fn, delayed.%s(…))", name, name)
	}
	return ""
}
