package page

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web/internal/auth"
	"github.com/godelayed/delayed/web/internal/format"
	"github.com/godelayed/delayed/web/internal/site"
)

// formAction is something that a user can do by a form.
type formAction struct {
	Role auth.Role
	do   func(*shared, *site.Request) (outcome, error)
}

// formActions are the actions of a page, by the value of field "do".
type formActions map[string]formAction

// outcome is where the browser goes after an action, and what it shows there.
type outcome struct {
	To   string // an address of this site; "" for field "back" of the form
	Text string
	Bad  bool  // it went wrong, in part at least
	Form *page // in place of all that: the form once more, with what was typed and what is wrong with it
}

// commands returns the actions of pages about things with commands, and others. field has the name of the thing, and
// "queue" the queue of an entry.
func commands(list []site.Command, field string, others formActions) formActions {
	for _, c := range list {
		others[c.Name] = formAction{c.Role, func(s *shared, q *site.Request) (outcome, error) {
			name := q.Args.Get(field)
			err := c.Do(s.Site, q, q.Args.Get("queue"), name)
			return outcome{To: c.To, Text: fmt.Sprintf(c.Done, name)}, err
		}}
	}
	return others
}

// verbActions returns the actions of a page that does all verbs, by their names behind a beginning.
func verbActions(
	actions formActions, beginning string, do func(*shared, *site.Request) (outcome, error),
) formActions {
	for _, v := range site.Verbs {
		actions[beginning+v.Name] = formAction{auth.Operator, do}
	}
	return actions
}

// verbNamed returns the verb of a form: the value of its field "do", with or without a beginning.
func verbNamed(args url.Values, beginning string) *site.Verb {
	name := strings.TrimPrefix(args.Get("do"), beginning)
	i := slices.IndexFunc(site.Verbs, func(v site.Verb) bool { return v.Name == name })
	return &site.Verbs[i] // the actions are made of verbs
}

// mostListed is how many failures an outcome lists.
const mostListed = 3

// outcomeOf describes what was done to tasks with given ids.
func outcomeOf(v *site.Verb, r *inspect.Report) outcome {
	parts := []string{fmt.Sprintf("%s %s.", v.Past, tasks(r.Done))}
	if r.Skipped > 0 {
		parts = append(parts, tasks(r.Skipped)+" had left the state meanwhile.")
	}
	failed := len(r.Failed) + r.FailedMore
	if failed > 0 {
		parts = append(parts, fmt.Sprintf("It went wrong with %s:", tasks(failed)))
	}
	for _, f := range r.Failed[:min(len(r.Failed), mostListed)] {
		parts = append(parts, fmt.Sprintf("%.60s: %v.", inspect.Printable(f.ID), f.Err))
	}
	if failed > mostListed {
		parts = append(parts, fmt.Sprintf("And so on with %d more.", failed-mostListed))
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
	return format.Number(n) + " tasks"
}

// packID writes the id of a task for a field of a form, which would change line ends and what is not UTF-8.
func packID(id string) string { return url.QueryEscape(id) }

// unpackIDs reads ids that packID has written.
func unpackIDs(packed []string) (ids []string, err error) {
	for _, text := range packed {
		id, err := url.QueryUnescape(text)
		if err != nil {
			return nil, site.Bad("expected the id of a task, escaped as in addresses")
		}
		if id != "" {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// taskList is a list of tasks, as addresses and forms name it.
type taskList struct {
	Queue  string
	State  state.Task
	Filter inspect.Filter
}

// address returns the list's part of an address.
func (l *taskList) address() url.Values {
	args := site.FilterValues(&l.Filter)
	args.Set("queue", l.Queue)
	args.Set("state", l.State.String())
	return args
}

// listOf reads the list that a form is about, from its field "list". It knows no fields but those of lists: an action
// on all that match must not reach more tasks because the name of a filter is misspelt.
func listOf(s *shared, q *site.Request) (l taskList, err error) {
	args, err := url.ParseQuery(q.Args.Get("list"))
	if err != nil {
		return l, site.Bad("the form does not say which list it is about")
	}
	for name := range args {
		if name == "queue" || name == "state" {
			continue
		}
		if !site.IsFilter(name) {
			return l, site.Bad(fmt.Sprintf("expected the filters of a list, found %.100q", name))
		}
	}
	l.Queue = args.Get("queue")
	var ok bool
	if l.State, ok = site.StateNamed(args.Get("state")); !ok || l.Queue == "" {
		return l, site.Bad("the form does not say which queue and state its list is of")
	}
	l.Filter, err = site.ParseFilter(args, s.Hidden(q.User))
	return l, err
}

// doSome does a verb to the tasks that are selected.
func doSome(s *shared, q *site.Request) (outcome, error) {
	l, err := listOf(s, q)
	if err != nil {
		return outcome{}, err
	}
	ids, err := unpackIDs(q.Args["id"])
	switch {
	case err != nil:
		return outcome{}, err
	case len(ids) == 0:
		return outcome{Text: "Nothing was done: no task is selected.", Bad: true}, nil
	case len(ids) > site.MaxSelected:
		return outcome{}, site.Bad(fmt.Sprintf("expected at most %d selected tasks, found %d: filter the list, "+
			"and act on all that match", site.MaxSelected, len(ids)))
	}
	return s.doVerb(q, l.Queue, verbNamed(q.Args, ""), ids)
}

// doVerb does a verb to tasks of a queue.
func (s *shared) doVerb(q *site.Request, queue string, v *site.Verb, ids []string) (outcome, error) {
	q.Args.Set("queue", queue)
	a, err := v.Action(s.Site, q.Args)
	if err != nil {
		return outcome{}, err
	}
	r, err := q.Ins.Do(q.Ctx, queue, a, ids...)
	if err != nil {
		return outcome{}, fmt.Errorf("%s %s, then stopped: %w", v.Past, tasks(r.Done), err)
	}
	return outcomeOf(v, &r), nil
}

// doAll does a verb to all tasks of a list that its filter matches, as a job.
func doAll(s *shared, q *site.Request) (outcome, error) {
	l, err := listOf(s, q)
	if err != nil {
		return outcome{}, err
	}
	v := verbNamed(q.Args, "all-")
	if !v.Fits(l.State) {
		return outcome{}, site.Bad(fmt.Sprintf("cannot %s %v tasks", v.Name, l.State))
	}
	q.Args.Set("queue", l.Queue)
	for _, name := range []string{"when", "to"} { // the form asks for them a second time, beside the buttons for all
		if q.Args.Has(name + "-all") {
			q.Args.Set(name, q.Args.Get(name+"-all"))
		}
	}
	a, err := v.Action(s.Site, q.Args)
	if err != nil {
		return outcome{}, err
	}
	return s.startJob(q, site.Order{Queue: l.Queue, State: l.State, Filter: l.Filter, What: v.Label, Action: a})
}
