package cli

import (
	"context"
	"strings"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/state"
)

// bulk is an action on all tasks of lists.
type bulk struct {
	action inspect.Action
	edit   *editFlags
	verb   string // in the infinitive, for the question
	where  string // what follows the queue in the question
	queue  string
	states []string
	among  []state.Task // the states that the action takes
	filter inspect.Filter
	yes    bool
	dry    bool
}

// actOnAll asks, then does an action to all tasks of lists that a filter matches. Ctrl-C stops it after a page.
func (a *app) actOnAll(ctx context.Context, b *bulk) error {
	if err := a.connect(); err != nil {
		return err
	}
	states, err := parseStates(b.states, b.among)
	if err != nil {
		return err
	}
	q, err := a.queue(ctx, b.queue)
	if err != nil {
		return err
	}
	held := 0
	for _, s := range states {
		held += q.Size(s)
	}
	if !b.dry && held > 0 {
		if err := a.confirm(ctx, b.yes, b.question(held, states)); err != nil {
			return err
		}
	}
	v := &document.Acted{Action: b.verb, DryRun: b.dry, Reports: []document.Report{}}
	if held == 0 {
		states = nil // nobody was asked about tasks that come meanwhile
	}
	var errs []error
	for _, s := range states {
		report, err := a.doAll(ctx, b, inspect.Query{State: s, Filter: b.filter}, q.Size(s))
		v.Reports = append(v.Reports, document.ReportOf(b.queue, s.String(), &report))
		errs = append(errs, unclear(err))
		if ctx.Err() != nil {
			v.Interrupted = true
			errs = append(errs, errInterrupted)
			break
		}
	}
	return a.acted(v, errs)
}

// question asks whether to go on.
func (b *bulk) question(held int, states []state.Task) string {
	tasks := strings.ReplaceAll(stateNames(states), ", ", " and ") + " task"
	text := term.Count(held, tasks)
	if which := call.FilterText(&b.filter); which != "" {
		text = "those of " + text + " that match " + which
	}
	return strings.ToUpper(b.verb[:1]) + b.verb[1:] + " " + text + " in queue " +
		term.Clip(b.queue, 128) + b.where + "?"
}

// doAll does an action to one list, with a progress bar.
func (a *app) doAll(ctx context.Context, b *bulk, q inspect.Query, held int) (inspect.Report, error) {
	bar := a.bar()
	bar.Total = held
	defer bar.Clear()
	progress := func(r inspect.Report) bool {
		note := "done " + term.Number(r.Done)
		if n := len(r.Failed) + r.FailedMore; n > 0 {
			note += ", failed " + term.Number(n)
		}
		bar.Show(r.Scanned, note)
		return ctx.Err() == nil
	}
	if b.dry {
		return a.countAll(ctx, b.queue, q, progress)
	}
	action := b.action
	if b.edit != nil {
		var some bool
		var err error
		if action, some, err = b.edit.actionFor(ctx, a, b.queue, q); err != nil || !some {
			return inspect.Report{}, err
		}
	}
	// The end of ctx stops it between two pages, not in the middle of one.
	return a.ins.DoAll(context.WithoutCancel(ctx), b.queue, action, q, progress)
}

// countAll counts the tasks of a list.
func (a *app) countAll(
	ctx context.Context, queue string, q inspect.Query, progress func(inspect.Report) bool,
) (r inspect.Report, err error) {
	q.Limit = 1000
	for {
		page, err := a.ins.Tasks(ctx, queue, q)
		if err != nil {
			return r, err
		}
		r.Scanned += page.Scanned
		r.Done += len(page.Tasks)
		if !progress(r) || page.Cursor == "" {
			return r, nil
		}
		q.Cursor = page.Cursor
	}
}
