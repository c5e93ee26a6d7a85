package delayed_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

func misusedHandles(t *testing.T, rdb *delayed.Redis) (all []misuse) {
	t.Helper()
	for name, do := range map[string]func(*delayed.Redis) error{
		"Ping":  func(r *delayed.Redis) error { return r.Ping(t.Context()) },
		"Check": func(r *delayed.Redis) error { _, err := r.Check(t.Context()); return err },
		"Close": (*delayed.Redis).Close,
		"OpenQueue": func(r *delayed.Redis) error {
			_, err := delayed.OpenQueue(r, delayed.QueueConfig{Name: "q"})
			return err
		},
		"NewQueue": func(r *delayed.Redis) error { delayed.NewQueue("q", r); return nil },
		"NewWorker": func(r *delayed.Redis) error {
			_, err := delayed.NewWorker(r, delayed.WorkerConfig{Queues: delayed.Strict{"q"}})
			return err
		},
		"NewSweeper": func(r *delayed.Redis) error {
			_, err := delayed.NewSweeper(r, delayed.SweeperConfig{Queues: []string{"q"}})
			return err
		},
		"NewScheduler": func(r *delayed.Redis) error {
			_, err := delayed.NewScheduler(r, delayed.SchedulerConfig{Queue: "q"})
			return err
		},
		"WithPrefix": func(r *delayed.Redis) error { r.WithPrefix("p"); return nil },
	} {
		all = append(all,
			misuse{name + " of a nil Redis", func() error { return do(nil) }, "the *Redis is nil or zero"},
			misuse{
				name + " of a zero Redis", func() error { return do(&delayed.Redis{}) },
				"the *Redis is nil or zero",
			},
		)
	}
	closed, err := delayed.Dial(redistest.Shared(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	late := delayed.NewQueue(redistest.Name(t), closed)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	sweeper, err := delayed.NewSweeper(rdb, delayed.SweeperConfig{Queues: []string{redistest.Name(t)}})
	if err != nil {
		t.Fatal(err)
	}
	scheduler, err := delayed.NewScheduler(rdb, delayed.SchedulerConfig{Queue: redistest.Name(t)})
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	unfinished := delayed.FromPool(&redis.Pool{})
	twice := func(run func(context.Context) error) func() error {
		return func() error { return errors.Join(run(ended), run(ended)) }
	}
	return append(all,
		misuse{"FromPool(nil)", none(func() { delayed.FromPool(nil) }), "FromPool(nil)"},
		misuse{"FromPool of a zero pool", func() error { return unfinished.Ping(t.Context()) }, "connecting to Redis"},
		misuse{"FromSource(nil)", none(func() { delayed.FromSource(nil) }), "FromSource(nil)"},
		misuse{
			"FromSource of a nil pointer", none(func() { delayed.FromSource((*wrongSource)(nil)) }),
			"FromSource(nil)",
		},
		misuse{"SlogLogger(nil)", none(func() { delayed.SlogLogger(nil) }), "SlogLogger(nil)"},
		misuse{
			"SlogLogger of a nil pointer", none(func() { delayed.SlogLogger((*slog.JSONHandler)(nil)) }),
			"SlogLogger(nil)",
		},
		misuse{"Ping without a context", func() error { return rdb.Ping(noContext) }, "the context is nil"},
		misuse{
			"Check without a context", func() error { _, err := rdb.Check(noContext); return err },
			"the context is nil",
		},
		misuse{
			"Check with an unknown name", func() error { _, err := rdb.Check(t.Context(), "evictions"); return err },
			`unknown name "evictions"`,
		},
		misuse{"Ping of a closed handle", func() error { return closed.Ping(t.Context()) }, "closed"},
		misuse{
			"Check of a closed handle", func() error { _, err := closed.Check(t.Context()); return err },
			"delayed: closed",
		},
		misuse{
			"Delay on a closed handle", func() error { _, err := late.Delay(wrongOne, 1); return err },
			"delayed: closed",
		},
		misuse{
			"Len on a closed handle", func() error { _, err := late.Len(t.Context()); return err },
			"delayed: closed",
		},
		misuse{
			"Run of a nil Sweeper", func() error { return (*delayed.Sweeper)(nil).Run(t.Context()) },
			"the *Sweeper is nil or zero",
		},
		misuse{
			"Run of a zero Sweeper", func() error { return new(delayed.Sweeper).Run(t.Context()) },
			"the *Sweeper is nil or zero",
		},
		misuse{
			"Run of a Sweeper without a context", func() error { return sweeper.Run(noContext) },
			"the context is nil",
		},
		misuse{"Run of a Sweeper twice", twice(sweeper.Run), "delayed: closed: Run was called before"},
		misuse{
			"Run of a nil Scheduler", func() error { return (*delayed.Scheduler)(nil).Run(t.Context()) },
			"the *Scheduler is nil or zero",
		},
		misuse{
			"Run of a zero Scheduler", func() error { return new(delayed.Scheduler).Run(t.Context()) },
			"the *Scheduler is nil or zero",
		},
		misuse{
			"Run of a Scheduler without a context", func() error { return scheduler.Run(noContext) },
			"the context is nil",
		},
		misuse{"Run of a Scheduler twice", twice(scheduler.Run), "delayed: closed: Run was called before"},
	)
}
