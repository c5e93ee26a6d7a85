package web

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/state"
)

// verb is something that operators do to tasks.
type verb struct {
	Name   string // in forms
	Label  string
	Past   string // "Deleted"
	Ask    string // what else the form asks for: "when", "to" or nothing
	Danger bool   // it cannot be undone
	states []state.Task
	action func(s *site, args url.Values) (inspect.Action, error)
}

var verbs = []verb{
	{
		"run", "Run now", "Made pending", "", false,
		[]state.Task{state.Scheduled, state.Retry, state.Parked},
		fixed(inspect.RunNow()),
	},
	{"retry", "Retry", "Made pending", "", false, []state.Task{state.Archived}, fixed(inspect.RunNow())},
	{
		"archive", "Archive", "Archived", "", false,
		[]state.Task{state.Pending, state.Scheduled, state.Retry, state.Parked},
		fixed(inspect.Archive()),
	},
	{
		"reschedule", "Reschedule", "Rescheduled", "when", false,
		[]state.Task{state.Pending, state.Scheduled, state.Retry},
		reschedule,
	},
	{
		"move", "Move", "Moved", "to", false,
		[]state.Task{state.Pending, state.Scheduled, state.Retry, state.Parked, state.Archived},
		move,
	},
	{
		"cancel", "Cancel", "Canceled", "", true,
		[]state.Task{state.Pending, state.Active, state.Scheduled, state.Retry, state.Parked, state.Aggregating},
		fixed(inspect.Cancel()),
	},
	{
		"delete", "Delete", "Deleted", "", true,
		[]state.Task{
			state.Pending, state.Scheduled, state.Retry, state.Parked, state.Archived, state.Completed, state.Dropped,
			state.Canceled,
		},
		fixed(inspect.Delete()),
	},
}

func fixed(a inspect.Action) func(*site, url.Values) (inspect.Action, error) {
	return func(*site, url.Values) (inspect.Action, error) { return a, nil }
}

func reschedule(_ *site, args url.Values) (inspect.Action, error) {
	if args.Get("when") == "" {
		return inspect.Action{}, bad("when? Give a duration from now on, such as 15m, or a time in UTC")
	}
	at, err := call.ParseWhen(args.Get("when"), time.Now(), time.UTC)
	if err != nil {
		return inspect.Action{}, bad(err.Error())
	}
	if at.Year() > 9999 || at.Year() < 1 {
		return inspect.Action{}, bad("expected a time up to the year 9999")
	}
	return inspect.Reschedule(at), nil
}

func move(s *site, args url.Values) (inspect.Action, error) {
	to := strings.TrimSpace(args.Get("to"))
	if to == "" {
		return inspect.Action{}, bad("where to? Give the name of a queue")
	}
	if _, err := delayed.OpenQueue(s.rdb, delayed.QueueConfig{Name: to}); err != nil {
		return inspect.Action{}, bad(err.Error())
	}
	if to == args.Get("queue") {
		return inspect.Action{}, bad("the tasks are in queue " + inspect.Printable(to) + " already")
	}
	return inspect.MoveTo(to), nil
}

// fits reports whether v can be done to tasks in a state.
func (v *verb) fits(in state.Task) bool { return slices.Contains(v.states, in) }

// verbsFor returns what can be done to tasks in a state.
func verbsFor(in state.Task) (fit []verb) {
	for _, v := range verbs {
		if v.fits(in) {
			fit = append(fit, v)
		}
	}
	return fit
}

// verbNamed returns the verb of a form: the value of its field "do", with or without a beginning.
func verbNamed(args url.Values, beginning string) *verb {
	name := strings.TrimPrefix(args.Get("do"), beginning)
	i := slices.IndexFunc(verbs, func(v verb) bool { return v.Name == name })
	return &verbs[i] // the deeds are made of verbs
}

// verbDeeds returns the deeds of a page that does all verbs, by their names behind a beginning.
func verbDeeds(deeds map[string]deed, beginning string, do func(*site, *request) (outcome, error)) map[string]deed {
	for _, v := range verbs {
		deeds[beginning+v.Name] = deed{Operator, do}
	}
	return deeds
}

// mostTold is how many failures an outcome tells of.
const mostTold = 3

// outcomeOf says what was done to tasks with given ids.
func outcomeOf(v *verb, r *inspect.Report) outcome {
	parts := []string{fmt.Sprintf("%s %s.", v.Past, tasks(r.Done))}
	if r.Skipped > 0 {
		parts = append(parts, tasks(r.Skipped)+" had left the state meanwhile.")
	}
	failed := len(r.Failed) + r.FailedMore
	if failed > 0 {
		parts = append(parts, fmt.Sprintf("It went wrong with %s:", tasks(failed)))
	}
	for _, f := range r.Failed[:min(len(r.Failed), mostTold)] {
		parts = append(parts, fmt.Sprintf("%.60s: %v.", inspect.Printable(f.ID), f.Err))
	}
	if failed > mostTold {
		parts = append(parts, fmt.Sprintf("And so on with %d more.", failed-mostTold))
	}
	if r.Done == 0 && failed == 0 && r.Skipped > 0 {
		parts = parts[1:]
	}
	return outcome{Text: strings.Join(parts, " "), Bad: failed > 0 || r.Done == 0}
}

// tasks counts tasks in words.
func tasks(n int) string {
	if n == 1 {
		return "1 task"
	}
	return number(n) + " tasks"
}

// packID writes the id of a task for a field of a form, which would change line ends and what is not UTF-8.
func packID(id string) string { return url.QueryEscape(id) }

// unpackIDs reads ids that packID has written.
func unpackIDs(packed []string) (ids []string, err error) {
	for _, text := range packed {
		id, err := url.QueryUnescape(text)
		if err != nil {
			return nil, bad("expected the id of a task, escaped as in addresses")
		}
		if id != "" {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
