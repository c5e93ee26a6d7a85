package delayed

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// startCheck bounds how long the start of a worker waits for what Redis says of its settings.
const startCheck = time.Second

// checkSettings asks the servers of the worker's queues whether their settings are fit for tasks, and logs warnings.
// answered is false if one of them did not answer.
func (w *Worker) checkSettings(ctx context.Context, limit time.Duration) (answered bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	servers := make([]redisstore.Server, len(w.groups))
	for i, g := range w.groups {
		servers[i] = g.lanes[0].store.Server(w.where)
		if len(w.groups) > 1 {
			servers[i].Name += fmt.Sprintf(", for queue %q,", g.lanes[0].store.Name)
		}
	}
	warnings, err := checkServers(ctx, w.lanes[0].store.Src, servers, w.cfg.Allow)
	var unfit *SettingError
	if err != nil && !errors.As(err, &unfit) {
		return false, nil // the loops say that Redis does not answer
	}
	for _, warning := range warnings {
		w.log.Warn(warning)
	}
	return true, err
}

// followUp does what the start could not wait for: the check of the settings, if Redis did not answer then, and a look
// for queues that nobody uses.
func (w *Worker) followUp(ctx context.Context, answered bool) {
	for wait := (loop.Backoff{}); !answered; {
		var err error
		if answered, err = w.checkSettings(ctx, redisstore.CallTimeout); err != nil {
			w.unfit = err
			w.stopFor(stopSettings)
			return
		}
		if !answered && !loop.Sleep(ctx, wait.Next()) {
			return
		}
	}
	for _, l := range w.lanes {
		if used, err := l.store.Used(ctx, w.id); err == nil && !used {
			w.log.With("queue", l.store.Name).
				Warn("Redis knows of no task of this queue, now or in the last 90 days: is its name right, and the " +
					"key prefix?")
		}
	}
}

// logStart logs that the worker begins, and what it is.
func (w *Worker) logStart() {
	functions := w.Functions()
	paths := make([]string, len(functions))
	for i, f := range functions {
		paths[i] = f.Path
	}
	log := w.log.With("redis", w.where)
	if w.prefix != "" {
		log = log.With("prefix", w.prefix)
	}
	log.WithField("queues", w.plan.String()).WithField("concurrency", w.cfg.Concurrency).WithField("functions", paths).
		WithField("version", libraryVersion()).Info("worker started")
	if len(functions) == 0 && w.pythonStore == nil {
		w.log.Warn("no functions are registered: all tasks will be parked until a worker knows their functions; " +
			"call Register before Run")
	}
}

// String returns the order as it is configured: "critical, mail (strict)" or "critical=6, mail=3 (weighted)".
func (p *orderPlan) String() string {
	if p.configured == nil {
		return strings.Join(p.names, ", ") + " (strict)"
	}
	items := make([]string, len(p.names))
	for i, name := range p.names {
		items[i] = fmt.Sprintf("%s=%d", name, p.configured[i])
	}
	return strings.Join(items, ", ") + " (weighted)"
}

// libraryVersion returns the version of this module that is linked into the program.
func libraryVersion() string {
	const path = "github.com/godelayed/delayed"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Path == path {
		return info.Main.Version
	}
	for _, dep := range info.Deps {
		if dep.Path == path {
			return dep.Version
		}
	}
	return "unknown"
}
