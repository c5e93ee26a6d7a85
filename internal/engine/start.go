package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/engine/child"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/state"
)

// startCheck bounds how long the start of a worker waits for the settings of Redis.
const startCheck = time.Second

// checkSettings asks the servers of the worker's queues for their settings, logs warnings, and returns an error if the
// settings are unfit for tasks. answered is false if a server did not answer.
func (w *Worker) checkSettings(ctx context.Context, limit time.Duration) (answered bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	servers := make([]redisstore.Server, len(w.slotGroups))
	for i, g := range w.slotGroups {
		servers[i] = g.lanes[0].Store.Server(w.cfg.Where)
		if len(w.slotGroups) > 1 {
			servers[i].Name += fmt.Sprintf(", for queue %q,", g.lanes[0].Store.Name)
		}
	}
	warnings, unfit, err := w.cfg.Settings(ctx, servers)
	if err != nil {
		return false, nil // the loops log that Redis does not answer
	}
	for _, warning := range warnings {
		w.log.Warn(warning)
	}
	return true, unfit
}

// afterStart does what the start did not wait for: it checks the settings until Redis answers, and warns of queues that
// nobody uses.
func (w *Worker) afterStart(ctx context.Context, answered bool) {
	for wait := (loop.Backoff{}); !answered; {
		var err error
		if answered, err = w.checkSettings(ctx, redisstore.CallTimeout); err != nil {
			w.unfit = err
			w.StopFor(state.StopSettings)
			return
		}
		if !answered && !loop.Sleep(ctx, wait.Next()) {
			return
		}
	}
	var unused []string
	for _, l := range w.lanes {
		if used, err := l.Store.Used(ctx, w.id); err == nil && !used {
			unused = append(unused, l.Store.Name)
		}
	}
	const doubt = "now or in the last 90 days: is its name right, and the key prefix?"
	switch n := len(unused); {
	case n == 1:
		w.log.With("queue", unused[0]).Warn("Redis knows of no task of this queue, " + doubt)
	case n > 1: // in one line, however many they are
		w.log.WithField("queues", unused[:min(n, lane.MostLogged)]).WithField("count", n).
			Warn("Redis knows of no task of several queues, " +
				strings.Replace(doubt, "is its name", "are their names", 1))
	}
}

// logStart logs that the worker starts, with its configuration.
func (w *Worker) logStart() {
	functions := w.Functions()
	paths := make([]string, len(functions))
	for i, f := range functions {
		paths[i] = f.Path
	}
	log := w.log.With("redis", w.cfg.Where)
	if w.cfg.Prefix != "" {
		log = log.With("prefix", w.cfg.Prefix)
	}
	log.WithField("queues", w.plan.String()).WithField("concurrency", w.cfg.Concurrency).WithField("functions", paths).
		WithField("version", w.cfg.Build.Library).Info("worker started")
	if len(functions) == 0 && w.cfg.PythonQueue == "" {
		w.log.Warn("no functions are registered: all tasks will be parked until a worker knows their functions; " +
			"call Register before Run")
	}
}

// ServeChild makes this process a child that runs tasks for its parent. made returns a worker like the parent's. It
// does not return.
func ServeChild(made func() (*Worker, error)) {
	new(child.Child).Serve(func(c *child.Child) error {
		w, err := made()
		if err != nil {
			return err
		}
		w.phase.Store(int32(state.Running)) // Use and Listen are too late now
		c.Source, c.Prefix, c.Legacy, c.MaxRetry = w.cfg.Source, w.cfg.Prefix, w.cfg.Legacy, w.cfg.MaxRetry
		c.Registry, c.Program, c.IsFailure = &w.registry, w.cfg.Program, w.cfg.IsFailure
		return w.cfg.Program.Prepare()
	})
}
