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

// verb is an action on tasks.
type verb struct {
	binding

	name, done string // done is the participle
	states     []state.Task
	action     func() inspect.Action // nil: it depends on what is asked for first
}

// verbs are the actions on tasks. They do what the commands of the same names do.
var verbs = []verb{
	{
		binding{key: "r", what: "run now: retry what has failed, run what waits", hint: "run now"},
		"run now", "run", term.Runnable, inspect.RunNow,
	},
	{
		binding{key: "a", what: "archive: it runs only if somebody runs it again", hint: "archive"},
		"archive", "archived", term.Archivable, inspect.Archive,
	},
	{binding{key: "d", what: "delete", hint: "delete"}, "delete", "deleted", term.Deletable, inspect.Delete},
	{
		binding{key: "c", what: "cancel what waits or runs", hint: "cancel"},
		"cancel", "canceled", term.Cancelable, inspect.Cancel,
	},
	{binding{key: "m", what: "move to another queue", hint: "move"}, "move", "moved", term.Movable, nil},
	{
		binding{key: "R", what: "reschedule: give another due time", hint: "due"},
		"reschedule", "rescheduled", term.Reschedulable, nil,
	},
	{binding{key: "e", what: "edit the arguments of one task", hint: "edit"}, "edit", "edited", term.Movable, nil},
}

// taskKeys are the keys of the verbs. Those that do not take tasks in a state are not among the hints.
func taskKeys(in state.Task) (keys []binding) {
	for _, v := range verbs {
		if !slices.Contains(v.states, in) {
			v.hint = ""
		}
		keys = append(keys, v.binding)
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

// act handles the keys of the verbs.
func (m *model) act(key string, what func() (selection, error)) (cmd tea.Cmd, known bool) {
	i := slices.IndexFunc(verbs, func(v verb) bool { return v.key == key })
	if i < 0 {
		return nil, false
	}
	v := verbs[i]
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

// text names the tasks.
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

// confirm asks whether to apply an action to tasks.
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

// start applies an action to tasks.
func (m *model) start(v verb, s selection, a inspect.Action) tea.Cmd {
	if s.all != nil {
		return m.startJob(v, s, a)
	}
	m.notify(term.C(v.name + "…"))
	return m.finish(func(ctx context.Context) term.Cell {
		r, err := m.src.Do(ctx, s.queue, a, s.ids...)
		return reportText(v, &r, err)
	})
}

// finish runs an action and shows what it has done. The end of the program does not cut it off in the middle.
func (m *model) finish(do func(context.Context) term.Cell) tea.Cmd {
	return m.beside(func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx), patience)
		defer cancel()
		return m.done(do(ctx))
	})
}

// done shows what an action has done, and reads the screen anew.
func (m *model) done(note term.Cell) tea.Msg {
	return then(func() tea.Cmd {
		m.notify(note)
		return m.refresh()
	})
}

// reportText describes what has been done.
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

// jobMsg is due when it is time to show how far a job is.
type jobMsg struct{ job *job }

// jobInterval is how often that is.
const jobInterval = 200 * time.Millisecond

// startJob begins an action on a list.
func (m *model) startJob(v verb, s selection, a inspect.Action) tea.Cmd {
	j := &job{verb: v, total: s.held}
	m.job = j
	return tea.Batch(m.after(jobInterval, jobMsg{j}), m.beside(func() tea.Msg {
		r, err := m.src.DoAll(context.WithoutCancel(m.ctx), s.queue, a, *s.all, func(r inspect.Report) bool {
			j.scanned.Store(int64(r.Scanned))
			j.done.Store(int64(r.Done))
			return !j.stopped.Load() && m.ctx.Err() == nil
		})
		return then(func() tea.Cmd {
			m.job = nil
			m.notify(reportText(v, &r, err))
			return m.refresh()
		})
	}))
}

// watchJob shows how far a job is until it has ended.
func (m *model) watchJob(j *job) tea.Cmd {
	if m.job != j {
		return nil
	}
	return m.after(jobInterval, jobMsg{j})
}

// text is how far the job is.
func (j *job) text() string {
	bar := ""
	if j.total > 0 {
		bar = term.Bar(j.scanned.Load(), int64(j.total)) + " "
	}
	return bar + term.Number(j.scanned.Load()) + " of " + term.Number(j.total) + ", " + j.verb.done + " " +
		term.Number(j.done.Load()) + "; Esc stops it"
}

// fail shows what has gone wrong.
func (m *model) fail(what string, err error) {
	m.notify(term.C(what+": "+errText(err), term.Red))
}

// steer does something to a queue, worker, entry or group after somebody has agreed.
func (m *model) steer(question, detail, done string, do func(context.Context) error) {
	m.dialog = &dialog{question: question, detail: detail, yes: func() tea.Cmd {
		m.notify(term.C("…"))
		return m.finish(func(ctx context.Context) term.Cell {
			if err := do(ctx); err != nil {
				return term.C(errText(err), term.Red)
			}
			return term.C(done, term.Green)
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
