package inspect_test

import (
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// TestActionsOnPythonTasks does every action to tasks of Python, which keep their call, or get the edited one.
func TestActionsOnPythonTasks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := delayed.NewQueue("post", b.rdb)
	const call = `tasks.mail:send(1, to="ann")`
	for _, tt := range []struct {
		name   string
		action inspect.Action
		queue  string
		want   state.Task
		call   string
	}{
		{"run", inspect.RunNow(), queueName, state.Pending, call},
		{"archive", inspect.Archive(), queueName, state.Archived, call},
		{"reschedule", inspect.Reschedule(time.Now().Add(2 * time.Hour)), queueName, state.Scheduled, call},
		{"move", inspect.MoveTo(other.Name()), other.Name(), state.Scheduled, call},
		{
			"edit", inspect.Edit(delayed.NewPyTask("tasks.mail:send", []any{2}, map[string]any{"to": "bob"})),
			queueName, state.Scheduled, `tasks.mail:send(2, to="bob")`,
		},
		{"cancel", inspect.Cancel(), queueName, state.Canceled, call},
		{"delete", inspect.Delete(), queueName, state.Canceled, call},
	} {
		_, err := b.q.With(delayed.TaskID(tt.name), delayed.In(time.Hour), delayed.Retention(time.Hour)).Enqueue(bg,
			delayed.NewPyTask("tasks.mail:send", []any{1}, map[string]any{"to": "ann"}))
		b.Must(err)
		report, err := b.ins.Do(bg, queueName, tt.action, tt.name)
		if err != nil || report.Done != 1 {
			t.Errorf("%s: %+v, %v", tt.name, report, err)
			continue
		}
		task, err := b.ins.Task(bg, tt.queue, tt.name)
		b.Must(err)
		if task.State != tt.want || task.Call != tt.call || !task.Python {
			t.Errorf("%s: expected the %v task %s, found %+v", tt.name, tt.want, tt.call, task)
		}
	}
}
