package inspect_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// in returns the ids of the tasks in a state, joined.
func (b *bench) in(s state.Task) string {
	b.T.Helper()
	all := ids(b.tasks(inspect.Query{State: s}))
	slices.Sort(all)
	return strings.Join(all, " ")
}

// do does an action that must be done to a number of tasks.
func (b *bench) do(a inspect.Action, want int, ids ...string) {
	b.T.Helper()
	r, err := b.ins.Do(bg, queueName, a, ids...)
	b.Must(errors.Join(err, r.Err()))
	if r.Done != want || r.Scanned != len(ids) {
		b.T.Fatalf("%v: %+v, expected %d done of %d", a, r, want, len(ids))
	}
}

// TestActionsOnPendingTasks withdraws tasks from the middle and the ends of a list.
func TestActionsOnPendingTasks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 10 {
		_, err := b.q.With(delayed.TaskID(id(i))).Delay(welcome, i, "en")
		b.Must(err)
	}
	b.do(inspect.Delete(), 3, id(0), id(5), id(9))
	b.do(inspect.Archive(), 2, id(4), id(6))
	b.do(inspect.Reschedule(time.Now().Add(time.Hour)), 1, id(7))
	b.do(inspect.Edit(delayed.Call(welcome, 800, "de")), 1, id(8))
	b.do(inspect.Cancel(), 1, id(1))
	pending := b.tasks(inspect.Query{State: state.Pending})
	if got := strings.Join(ids(pending), " "); got != id(2)+" "+id(3)+" "+id(8) {
		t.Errorf("pending: %s", got)
	}
	if call := pending[len(pending)-1].Call; call != `inspect_test.welcome(800, "de")` {
		t.Errorf("edited: %s", call)
	}
	if got := b.in(state.Archived); got != id(4)+" "+id(6) {
		t.Errorf("archived: %s", got)
	}
	if got := b.in(state.Scheduled); got != id(7) {
		t.Errorf("scheduled: %s", got)
	}
	task, err := b.ins.Task(bg, queueName, id(4))
	b.Must(err)
	if task.Reason != "by hand" || task.Call != `inspect_test.welcome(4, "en")` {
		t.Errorf("%+v", task)
	}
	// What was withdrawn can be enqueued again under its id, and what was left runs.
	_, err = b.q.With(delayed.TaskID(id(5))).Delay(welcome, 5, "en")
	b.Must(err)
	var ran []int
	done := make(chan int, 10)
	b.work(delayed.Func(func(i int, _ string) { done <- i }, delayed.Name(path("welcome"))))
	for range 4 {
		ran = append(ran, <-done)
	}
	slices.Sort(ran)
	if !slices.Equal(ran, []int{2, 3, 5, 800}) {
		t.Errorf("ran %v", ran)
	}
	b.Idle()
	if n, err := b.q.Len(bg); err != nil || n != 0 {
		t.Errorf("%d tasks are pending, %v", n, err)
	}
}

// TestActionsOnFiledTasks brings filed tasks from one state to another.
func TestActionsOnFiledTasks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 6 {
		_, err := b.q.With(delayed.TaskID(id(i)), delayed.In(time.Hour)).Delay(welcome, i, "en")
		b.Must(err)
	}
	soon := time.Now().Add(time.Minute).Truncate(time.Millisecond)
	b.do(inspect.RunNow(), 1, id(0))
	b.do(inspect.Archive(), 2, id(1), id(2))
	b.do(inspect.Reschedule(soon), 1, id(3))
	b.do(inspect.Edit(delayed.Call(welcome, 400, "fr")), 1, id(4))
	b.do(inspect.Delete(), 1, id(5))
	b.do(inspect.RunNow(), 1, id(2))
	b.do(inspect.Delete(), 1, id(1))
	if got := b.in(state.Pending); got != id(0)+" "+id(2) {
		t.Errorf("pending: %s", got)
	}
	if got := b.in(state.Archived); got != "" {
		t.Errorf("archived: %s", got)
	}
	scheduled := b.tasks(inspect.Query{State: state.Scheduled})
	if len(scheduled) != 2 || !scheduled[0].Due.Equal(soon) || scheduled[0].ID != id(3) ||
		scheduled[1].Call != `inspect_test.welcome(400, "fr")` || time.Until(scheduled[1].Due) < 50*time.Minute {
		t.Errorf("scheduled: %+v", scheduled)
	}
}

// TestMove moves tasks in several states to another queue.
func TestMove(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := delayed.NewQueue("other", b.rdb)
	due := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	for i := range 3 {
		_, err := b.q.With(delayed.TaskID(id(i))).Delay(welcome, i, "en")
		b.Must(err)
		_, err = b.q.With(delayed.TaskID(id(10+i)), delayed.At(due)).Delay(welcome, i, "en")
		b.Must(err)
	}
	b.do(inspect.MoveTo("other"), 2, id(1), id(11))
	b.do(inspect.Archive(), 1, id(2))
	b.do(inspect.MoveTo("other"), 1, id(2))
	if p, s, a := b.in(state.Pending), b.in(state.Scheduled), b.in(state.Archived); p != id(0) ||
		s != id(10)+" "+id(12) || a != "" {
		t.Errorf("left: pending %q, scheduled %q, archived %q", p, s, a)
	}
	for id, want := range map[string]state.Task{id(1): state.Pending, id(2): state.Pending, id(11): state.Scheduled} {
		task, err := b.ins.Task(bg, "other", id)
		b.Must(err)
		if task.State != want || want == state.Scheduled && !task.Due.Equal(due) {
			t.Errorf("%+v, expected %v", task, want)
		}
	}
	if q, err := b.ins.Queue(bg, queueName); err != nil || q.Today.Archived != 1 {
		t.Errorf("counted %+v, %v, expected the one that was archived", q.Today, err)
	}
	if n, err := other.Len(bg); err != nil || n != 2 {
		t.Errorf("%d pending, %v", n, err)
	}
	if _, err := b.ins.Do(bg, queueName, inspect.MoveTo(queueName), id(0)); err == nil {
		t.Error("moved to the same queue")
	}
}

// TestDoAll does actions to all tasks that a filter means, page by page.
func TestDoAll(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const n = 450
	calls := make([]*delayed.Task, n)
	for i := range calls {
		calls[i] = delayed.Call(welcome, i, []string{"en", "de", "fr"}[i%3])
	}
	_, err := b.q.DelayMany(bg, calls...)
	b.Must(err)
	pages := 0
	r, err := b.ins.DoAll(bg, queueName, inspect.Archive(), inspect.Query{
		State: state.Pending, Filter: inspect.Filter{Text: `"de"`},
	}, func(inspect.Report) bool { pages++; return true })
	b.Must(errors.Join(err, r.Err()))
	if r.Scanned != n || r.Done != n/3 || pages < 4 {
		t.Errorf("%+v after %d pages", r, pages)
	}
	r, err = b.ins.DoAll(bg, queueName, inspect.Delete(), inspect.Query{
		State: state.Pending, Filter: inspect.Filter{Arg: "1=fr"},
	}, nil)
	b.Must(errors.Join(err, r.Err()))
	if r.Done != n/3 {
		t.Errorf("%+v", r)
	}
	q, err := b.ins.Queue(bg, queueName)
	b.Must(err)
	if len(b.tasks(inspect.Query{State: state.Pending})) != n/3 || q.Archived != n/3 || q.Pending != n/3 {
		t.Errorf("%+v", q)
	}
	r, err = b.ins.DoAll(bg, queueName, inspect.RunNow(), inspect.Query{State: state.Archived},
		func(r inspect.Report) bool { return r.Done < 100 })
	b.Must(errors.Join(err, r.Err()))
	if r.Done != 100 {
		t.Errorf("stopped by its caller: %+v", r)
	}
	for _, s := range []state.Task{state.Pending, state.Archived} {
		r, err = b.ins.DoAll(bg, queueName, inspect.Delete(), inspect.Query{State: s}, nil)
		b.Must(errors.Join(err, r.Err()))
	}
	if q, err = b.ins.Queue(bg, queueName); err != nil || q.Pending+q.Archived != 0 {
		t.Errorf("%+v, %v", q, err)
	}
	records, err := b.ins.Audit(bg, 0, 10)
	b.Must(err)
	var log []string
	for _, r := range records {
		log = append(log, fmt.Sprintf("%s %s %s %d", r.Action, r.Queue, r.State, r.Done))
		if r.Actor == "" || time.Since(r.At) > time.Minute {
			t.Errorf("%+v", r)
		}
	}
	want := "delete mail archived 50, delete mail pending 250, run mail archived 100, delete mail pending 150, " +
		"archive mail pending 150"
	if got := strings.Join(log, ", "); got != want || records[3].Filter.Arg != "1=fr" || records[0].Filter != nil {
		t.Errorf("audit log: %s", got)
	}
}

// TestActionsRefused holds wrong actions against their errors.
func TestActionsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := b.q.With(delayed.TaskID("a")).Delay(welcome, 1, "en")
	b.Must(err)
	for _, c := range []struct {
		action inspect.Action
		id     string
		want   string
	}{
		{inspect.Action{}, "a", "the Action is zero"},
		{inspect.Edit(nil), "a", "Edit(nil)"},
		{inspect.Reschedule(time.Time{}), "a", "expected a time"},
		{inspect.MoveTo("a b"), "a", "printable characters"},
		{inspect.RunNow(), "a", "cannot run pending tasks: expected one of [scheduled retry parked archived]"},
		{inspect.RunNow(), "none", "not found"},
		{inspect.Edit(delayed.Call(fails, 1)), "a", "expected arguments of"},
	} {
		r, err := b.ins.Do(bg, queueName, c.action, c.id)
		if err = errors.Join(err, r.Err()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, expected %q", c.action, err, c.want)
		}
	}
	if _, err := b.ins.DoAll(bg, queueName, inspect.Archive(), inspect.Query{State: state.Active}, nil); err == nil ||
		!strings.Contains(err.Error(), "cannot archive active tasks") {
		t.Errorf("%v", err)
	}
}

// TestDeleteWhatWasDropped deletes a list of completed tasks that begins with one that its handler has dropped.
func TestDeleteWhatWasDropped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	drop := delayed.Func(func() error { return delayed.Drop(errMailbox) }, delayed.Name("drop"))
	for i := range 2 {
		_, err := b.q.With(delayed.TaskID(id(i)), delayed.Retention(time.Hour)).Delay(drop)
		b.Must(err)
	}
	b.work(drop)
	b.Until("both are kept", func() bool { return len(b.tasks(inspect.Query{State: state.Completed})) == 2 })
	b.do(inspect.Delete(), 1, id(0))
	r, err := b.ins.DoAll(bg, queueName, inspect.Delete(), inspect.Query{State: state.Completed}, nil)
	b.Must(errors.Join(err, r.Err()))
	if r.Done != 1 {
		t.Errorf("%+v", r)
	}
}

// TestListOfGaps reads a list that has gaps, and tasks that were canceled.
func TestListOfGaps(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 6 {
		_, err := b.q.With(delayed.TaskID(id(i))).Delay(welcome, i, "en")
		b.Must(err)
	}
	b.do(inspect.Cancel(), 1, id(5))
	b.do(inspect.Delete(), 3, id(2), id(3), id(4))
	for _, newest := range []bool{false, true} {
		got := ids(b.tasks(inspect.Query{State: state.Pending, Limit: 1, NewestFirst: newest}))
		slices.Sort(got)
		if !slices.Equal(got, []string{id(0), id(1)}) {
			t.Errorf("newest first %v: %v", newest, got)
		}
	}
}

// TestLargeTasksAreMovedInParts moves tasks of more bytes than one call takes.
func TestLargeTasksAreMovedInParts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const n = 12
	for i := range n {
		q := b.q.With(delayed.TaskID(id(i)), delayed.In(time.Hour))
		_, err := q.Delay(welcome, i, strings.Repeat("x", 1_000_000))
		b.Must(err)
	}
	r, err := b.ins.DoAll(bg, queueName, inspect.MoveTo("other"), inspect.Query{State: state.Scheduled}, nil)
	b.Must(errors.Join(err, r.Err()))
	q, err := b.ins.Queue(bg, "other")
	b.Must(err)
	if r.Done != n || q.Scheduled != n || b.in(state.Scheduled)+b.in(state.Archived) != "" {
		t.Errorf("%+v, %+v", r, q)
	}
}
