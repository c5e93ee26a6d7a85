package page

import (
	"fmt"
	"net/url"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web/internal/site"
)

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
