package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/state"
)

// doctorView is what a doctor has found.
type doctorView struct {
	Problems []problemJSON `json:"problems"`
	Queues   int           `json:"queues"`
	Workers  int           `json:"workers"`
}

// problemJSON is something that should be looked at.
type problemJSON struct {
	Level  string `json:"level"` // error or warning
	Name   string `json:"name"`
	Queue  string `json:"queue"` // "" if it is about Redis
	Text   string `json:"text"`
	Advice string `json:"advice"`
}

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Aliases: []string{"diagnose"},
		Short: "Look for what is wrong with Redis, queues and workers, and say what to do",
		Long: "Look at the settings of Redis, and for queues without workers, functions that no worker knows,\n" +
			"parked and unreadable tasks, dead workers, old pauses, and entries that nobody ticks. The exit\n" +
			"code is 1 if there is an error among the problems, and 0 with warnings alone.",
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var found *doctorView
			var failed error
			err := a.show(cmd.Context(), func(ctx context.Context) (view, error) {
				v, err := a.diagnose(ctx)
				if found, failed = v, err; ctx.Err() != nil {
					failed = nil // --watch ends
				}
				return v, err
			})
			switch {
			case err != nil:
				return err
			case failed != nil:
				return errSilent // --watch has told of it
			case found == nil:
				return nil
			}
			for _, p := range found.Problems {
				if p.Level == "error" {
					return errSilent
				}
			}
			return nil
		},
	}
}

func (v *doctorView) add(level, name, queue, text, advice string) {
	v.Problems = append(v.Problems, problemJSON{level, name, queue, text, advice})
}

// diagnose looks at everything.
func (a *app) diagnose(ctx context.Context) (*doctorView, error) {
	v := &doctorView{Problems: []problemJSON{}}
	warnings, err := a.rdb.Check(ctx)
	if err != nil {
		known := false
		for _, e := range flatten(err) {
			var setting *delayed.SettingError
			if errors.As(e, &setting) {
				v.add("error", setting.Name, "", setting.Text,
					"change the setting of Redis; README.md, \"Where it runs\"")
				known = true
			}
		}
		if !known {
			return nil, err
		}
	}
	for _, w := range warnings {
		v.add("warning", "setting", "", w, "see README.md, \"Where it runs\"")
	}
	queues, err := a.ins.Queues(ctx)
	if err != nil {
		return nil, err
	}
	workers, err := a.ins.Workers(ctx)
	if err != nil {
		return nil, err
	}
	v.Queues = len(queues)
	for i := range workers {
		if workers[i].Alive() {
			v.Workers++
		}
	}
	for i := range queues {
		if err := queues[i].Err; err != nil {
			v.add("error", "wrong type", queues[i].Name, document.ErrorText(err.Error()),
				"another program uses a key of the queue: rename or delete that key, or use another prefix")
			continue
		}
		if err := a.diagnoseQueue(ctx, v, &queues[i]); err != nil {
			return nil, err
		}
	}
	v.deadWorkers(workers)
	return v, nil
}

// longPause is how long a pause may last before the doctor mentions it.
const longPause = time.Hour

func (a *app) diagnoseQueue(ctx context.Context, v *doctorView, q *inspect.Queue) error {
	if q.Workers == 0 && !q.Legacy && q.Pending+q.Scheduled+q.Retry > 0 {
		v.add("error", "no workers", q.Name, count(q.Pending+q.Scheduled+q.Retry, "task")+
			", and no worker serves it", "start a worker with this queue, and the same URL and prefix")
	}
	if age := q.At.Sub(q.Paused); !q.Paused.IsZero() && age > longPause {
		v.add("warning", "paused", q.Name, "paused for "+term.Duration(age), "delayed resume "+q.Name)
	}
	if q.Suspects > 0 {
		v.add("warning", "suspects", q.Name, count(q.Suspects, "pending task")+" died with a worker in the last 72 h",
			"look whether workers were killed, or run out of memory: docs/RELIABILITY.md")
	}
	if q.Today.Lost > 0 {
		v.add("warning", "lost claims", q.Name, count(int(q.Today.Lost), "claim")+" ended today after the worker had "+
			"lost them", "look whether workers stand still, or Redis is far away: these tasks ran twice")
	}
	functions, err := a.ins.Functions(ctx, q.Name)
	if err != nil {
		return err
	}
	if err := a.diagnoseParked(ctx, v, q); err != nil {
		return err
	}
	if err := a.diagnoseWaiting(ctx, v, q, functions); err != nil {
		return err
	}
	return a.diagnoseEntries(ctx, v, q)
}

// sample is how many tasks of each list the doctor looks at.
const sample = 200

// diagnoseParked counts parked tasks by function and reason.
func (a *app) diagnoseParked(ctx context.Context, v *doctorView, q *inspect.Queue) error {
	if q.Parked == 0 {
		return nil
	}
	page, err := a.ins.Tasks(ctx, q.Name, inspect.Query{State: state.Parked, Limit: sample})
	if err != nil {
		return err
	}
	why := map[string]int{}
	for i := range page.Tasks {
		t := &page.Tasks[i]
		text := inspect.ShortName(t.Function) + ": " + string(t.Reason)
		if t.Error != "" {
			text += ": " + t.Error
		}
		why[text]++
	}
	for _, text := range sorted(why) {
		v.add("error", "parked", q.Name, fmt.Sprintf("%s parked, %s", count(why[text], "task"), text),
			"deploy a worker that knows the function and its fields; after seven days they are archived")
	}
	return nil
}

// diagnoseWaiting looks for tasks of functions that no worker knows, and for those that cannot be read.
func (a *app) diagnoseWaiting(
	ctx context.Context, v *doctorView, q *inspect.Queue, functions []inspect.Function,
) error {
	known := map[string]bool{}
	for i := range functions {
		known[functions[i].Path] = true
		for _, alias := range functions[i].Aliases {
			known[alias] = true
		}
	}
	unknown, unreadable := map[string]int{}, 0
	for _, s := range []state.Task{state.Pending, state.Scheduled, state.Retry, state.Aggregating} {
		if q.Size(s) == 0 {
			continue
		}
		page, err := a.ins.Tasks(ctx, q.Name, inspect.Query{State: s, Limit: sample})
		if err != nil {
			return err
		}
		for i := range page.Tasks {
			t := &page.Tasks[i]
			switch {
			case t.Function == "":
				unreadable++
			case !t.Python && len(functions) > 0 && !known[t.Function]:
				unknown[t.Function]++
			}
		}
	}
	for _, path := range sorted(unknown) {
		v.add("error", "unknown function", q.Name, fmt.Sprintf("%s of %s, which no living worker knows",
			count(unknown[path], "task"), path), "deploy a worker that registers it, or give it the old path by Alias")
	}
	if unreadable > 0 {
		v.add("warning", "unreadable", q.Name, count(unreadable, "task")+" cannot be read",
			"delayed tasks ls "+q.Name+" shows why; workers archive them")
	}
	return nil
}

// late is how long after its time a tick is missing.
const late = time.Minute

func (a *app) diagnoseEntries(ctx context.Context, v *doctorView, q *inspect.Queue) error {
	queue, err := delayed.OpenQueue(a.rdb, delayed.QueueConfig{Name: q.Name, Legacy: q.Legacy})
	if err != nil {
		return err
	}
	entries, err := queue.Periodic().List(ctx)
	if err != nil {
		v.add("warning", "entries", q.Name, document.ErrorText(err.Error()),
			"use the version of this command that the schedulers have")
	}
	for i := range entries {
		e := &entries[i]
		if !e.Paused && !e.Next.IsZero() && q.At.Sub(e.Next) > late {
			v.add("error", "no scheduler", q.Name, fmt.Sprintf("entry %s should have ticked %s ago", e.Name,
				term.Duration(q.At.Sub(e.Next))), "start a scheduler: WorkerConfig.Schedulers, docs/PERIODIC.md")
		}
	}
	return nil
}

// deadWorkers mentions workers whose claims wait for a sweeper.
func (v *doctorView) deadWorkers(workers []inspect.Worker) {
	for i := range workers {
		w := &workers[i]
		for _, q := range w.Queues {
			if q.Alive == 0 && q.Claims > 0 {
				v.add("warning", "dead worker", q.Name, fmt.Sprintf("worker %s is dead and has claimed %s", w.ID,
					count(q.Claims, "task")), "a sweeper gives them back within seconds if a worker of the queue lives")
			}
		}
	}
}

func (v *doctorView) print(p *term.Page) {
	p.Say(term.C("Looked at Redis, "+count(v.Queues, "queue")+" and "+count(v.Workers, "living worker")+".", term.Dim))
	if len(v.Problems) == 0 {
		p.Say(term.C("Nothing is wrong.", term.Green))
		return
	}
	for _, f := range v.Problems {
		style, where := term.Yellow, "redis"
		if f.Level == "error" {
			style = term.Red
		}
		if f.Queue != "" {
			where = "queue " + f.Queue
		}
		p.Space()
		p.Say(term.C(f.Level+": ", style), term.C(where, term.Bold), term.C(": "+f.Text))
		p.Say(term.C("  "+f.Advice, term.Dim))
	}
}
