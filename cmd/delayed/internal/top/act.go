package top

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// verb is something to do with tasks.
type verb struct {
	key, name string
	done      string // the participle
	states    []state.Task
	action    func() inspect.Action
}

// verbs are what can be done with tasks by one key. What they do is that of the commands of the same names.
var verbs = []verb{
	{"r", "run now", "run", []state.Task{state.Scheduled, state.Retry, state.Parked, state.Archived}, inspect.RunNow},
	{"a", "archive", "archived", []state.Task{
		state.Pending, state.Scheduled, state.Retry, state.Parked,
	}, inspect.Archive},
	{"d", "delete", "deleted", []state.Task{
		state.Pending, state.Scheduled, state.Retry, state.Parked, state.Aggregating, state.Archived, state.Completed,
	}, inspect.Delete},
	{"c", "cancel", "canceled", []state.Task{
		state.Pending, state.Active, state.Scheduled, state.Retry, state.Parked, state.Aggregating,
	}, inspect.Cancel},
}

// askVerbs are the verbs whose action depends on what is written first.
var askVerbs = []verb{
	{"m", "move", "moved", []state.Task{
		state.Pending, state.Scheduled, state.Retry, state.Parked, state.Archived,
	}, nil},
	{"R", "reschedule", "rescheduled", []state.Task{state.Pending, state.Scheduled, state.Retry}, nil},
	{"e", "edit", "edited", []state.Task{
		state.Pending, state.Scheduled, state.Retry, state.Parked, state.Archived,
	}, nil},
}

// taskKeys are the keys of the verbs. Those that cannot be done to tasks in a state are not among the hints.
func taskKeys(in state.Task) []binding {
	keys := []binding{
		{key: "r", what: "run now: retry what has failed, run what waits", hint: "run now"},
		{key: "a", what: "archive: it runs only if somebody runs it again", hint: "archive"},
		{key: "d", what: "delete", hint: "delete"},
		{key: "c", what: "cancel what waits or runs", hint: "cancel"},
		{key: "m", what: "move to another queue", hint: "move"},
		{key: "R", what: "reschedule: give another due time", hint: "due"},
		{key: "e", what: "edit the arguments of one task", hint: "edit"},
	}
	for i, v := range slices.Concat(verbs, askVerbs) {
		if !slices.Contains(v.states, in) {
			keys[i].hint = ""
		}
	}
	return keys
}

// selection is what an action is done to: tasks of a queue that are in one state.
type selection struct {
	queue string
	state state.Task
	ids   []string
	call  string         // of the only one
	task  *inspect.Task  // the only one, if it is not a marked one
	all   *inspect.Query // all tasks of a list, in place of ids
	held  int            // tasks in the list
	clear func()         // called when the action begins, unless it is nil
}

// act answers the keys of the verbs.
func (m *model) act(key string, what func() (selection, error)) (cmd tea.Cmd, known bool) {
	all := slices.Concat(verbs, askVerbs)
	i := slices.IndexFunc(all, func(v verb) bool { return v.key == key })
	if i < 0 {
		return nil, false
	}
	v := all[i]
	s, err := what()
	if err == nil && !slices.Contains(v.states, s.state) {
		err = errors.New("expected a task that is " + stateNames(v.states) + ", found one that is " + s.state.String())
	}
	switch {
	case err != nil:
		m.fail("cannot "+v.name, err)
	case m.job != nil:
		m.fail("cannot "+v.name, errors.New("another action goes on; Esc ends it"))
	case v.key == "m":
		m.askWhere(v, s)
	case v.key == "R":
		m.askWhen(v, s)
	case v.key == "e":
		return m.askArguments(v, s), true
	default:
		m.confirm(v, s, v.action(), "")
	}
	return nil, true
}

// text says which tasks these are.
func (s *selection) text() string {
	switch {
	case s.all != nil && s.all.Filter.IsZero():
		return "all " + term.Count(s.held, s.state.String()+" task")
	case s.all != nil:
		return "all " + s.state.String() + " tasks that match the filter"
	default:
		return term.Count(len(s.ids), s.state.String()+" task")
	}
}

// confirm asks whether to do something to tasks.
func (m *model) confirm(v verb, s selection, a inspect.Action, where string) {
	d := &dialog{question: strings.ToUpper(v.name[:1]) + v.name[1:] + " " + s.text() + " of queue " +
		term.Clip(s.queue, 60) + where + "?"}
	switch {
	case s.all != nil:
		d.detail = "Esc stops it while it goes on; what is done then stays done."
	case len(s.ids) == 1:
		d.detail = s.call
	}
	d.yes = func() tea.Cmd {
		if s.clear != nil {
			s.clear()
		}
		return m.start(v, s, a)
	}
	m.dialog = d
}

// start does something to tasks.
func (m *model) start(v verb, s selection, a inspect.Action) tea.Cmd {
	if s.all != nil {
		return m.startJob(v, s, a)
	}
	m.say(term.C(v.name + "…"))
	return m.beside(func() tea.Msg {
		// Not the program's context: an action that has begun is not cut off in the middle.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx), patience)
		defer cancel()
		r, err := m.src.Do(ctx, s.queue, a, s.ids...)
		return doneMsg{reportText(v, &r, err)}
	})
}

// doneMsg says what an action has done.
type doneMsg struct{ said term.Cell }

// reportText says what has been done.
func reportText(v verb, r *inspect.Report, err error) term.Cell {
	text := v.done + " " + term.Count(r.Done, "task")
	if r.Skipped > 0 {
		text += ", skipped " + term.Number(r.Skipped) + " that changed meanwhile"
	}
	failed := len(r.Failed) + r.FailedMore
	if failed > 0 {
		text += ", failed for " + term.Number(failed) + ": " + errText(r.Failed[0].Err)
	}
	if err != nil {
		text += "; stopped: " + errText(err)
		if errors.Is(err, delayed.ErrUnknown) {
			text += "; it may be done or not: look before you repeat it"
		}
	}
	if failed > 0 || err != nil {
		return term.C(text, term.Red)
	}
	return term.C(text, term.Green)
}

// job is an action on all tasks of a list.
type job struct {
	verb    verb
	total   int
	scanned atomic.Int64
	done    atomic.Int64
	stopped atomic.Bool
}

// jobMsg says that it is time to show how far a job is.
type jobMsg struct{ job *job }

// jobLook is how often that is.
const jobLook = 200 * time.Millisecond

// startJob begins an action on a list.
func (m *model) startJob(v verb, s selection, a inspect.Action) tea.Cmd {
	j := &job{verb: v, total: s.held}
	m.job = j
	return tea.Batch(m.after(jobLook, jobMsg{j}), m.beside(func() tea.Msg {
		r, err := m.src.DoAll(context.WithoutCancel(m.ctx), s.queue, a, *s.all, func(r inspect.Report) bool {
			j.scanned.Store(int64(r.Scanned))
			j.done.Store(int64(r.Done))
			return !j.stopped.Load() && m.ctx.Err() == nil
		})
		return jobDoneMsg{j, doneMsg{reportText(v, &r, err)}}
	}))
}

// jobDoneMsg says that a job has ended.
type jobDoneMsg struct {
	job *job
	doneMsg
}

// watchJob shows how far a job is until it has ended.
func (m *model) watchJob(j *job) tea.Cmd {
	if m.job != j {
		return nil
	}
	return m.after(jobLook, jobMsg{j})
}

// text says how far the job is.
func (j *job) text() string {
	bar := ""
	if j.total > 0 {
		bar = term.Bar(j.scanned.Load(), int64(j.total)) + " "
	}
	return bar + term.Number(j.scanned.Load()) + " of " + term.Number(j.total) + ", " + j.verb.done + " " +
		term.Number(j.done.Load()) + "; Esc stops it"
}

// fail says what has gone wrong.
func (m *model) fail(what string, err error) {
	m.say(term.C(what+": "+errText(err), term.Red))
}

// steer does something to a queue or a worker after somebody has agreed.
func (m *model) steer(question, detail, done string, do func(context.Context) error) {
	m.dialog = &dialog{question: question, detail: detail, yes: func() tea.Cmd {
		m.say(term.C("…"))
		return m.beside(func() tea.Msg {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx), patience)
			defer cancel()
			if err := do(ctx); err != nil {
				return doneMsg{term.C(errText(err), term.Red)}
			}
			return doneMsg{term.C(done, term.Green)}
		})
	}}
}

func stateNames(states []state.Task) string {
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = s.String()
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
