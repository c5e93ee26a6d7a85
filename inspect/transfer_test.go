package inspect_test

import (
	"bytes"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

// export returns all tasks of a queue that can be exported.
func (b *bench) export() []inspect.Exported {
	b.T.Helper()
	var all []inspect.Exported
	for _, s := range []state.Task{state.Pending, state.Scheduled, state.Retry, state.Parked, state.Archived} {
		for _, t := range b.tasks(inspect.Query{State: s}) {
			e, err := t.Export()
			b.Must(err)
			all = append(all, e)
		}
	}
	return all
}

func seq(tasks []inspect.Exported) iter.Seq2[inspect.Exported, error] {
	return func(yield func(inspect.Exported, error) bool) {
		for _, t := range tasks {
			if !yield(t, nil) {
				return
			}
		}
	}
}

func TestExportAndImport(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.work(fails)
	_, err := b.q.With(delayed.TaskID("dead"), delayed.MaxRetry(0)).Delay(fails, 1)
	b.Must(err)
	_, err = b.q.With(delayed.TaskID("again"), delayed.Header("tenant", "a")).Delay(fails, 2)
	b.Must(err)
	_, err = b.q.With(delayed.TaskID("strange")).Delay(welcome, 3, "en")
	b.Must(err)
	b.Until("the tasks have run", func() bool {
		return len(b.tasks(inspect.Query{State: state.Archived})) == 1 &&
			len(b.tasks(inspect.Query{State: state.Retry})) == 1 &&
			len(b.tasks(inspect.Query{State: state.Parked})) == 1
	})
	w.Pause()
	b.Until("the worker pauses", func() bool { return w.Status().State == state.Paused })
	_, err = b.q.With(delayed.TaskID("later"), delayed.In(time.Hour)).Delay(welcome, 4, "en")
	b.Must(err)
	_, err = b.q.With(delayed.TaskID("next")).Delay(welcome, 5, "\x1b[31m")
	b.Must(err)

	before := b.export()
	if len(before) != 5 {
		t.Fatalf("exported %d tasks, expected 5", len(before))
	}
	report, err := b.ins.Import(bg, queueName, seq(before), nil)
	b.Must(err)
	if report.Done != 0 || len(report.Failed) != 5 {
		t.Errorf("imported what is there: %+v", report)
	}
	whole := redistest.Dump(t, b.Conn, b.Name)
	twice := append(slices.Clone(before), before...)
	for _, e := range before {
		_, err = b.ins.Do(bg, queueName, inspect.Delete(), e.ID)
		b.Must(err)
	}
	if left := b.export(); len(left) != 0 {
		t.Fatalf("%d tasks are left", len(left))
	}
	q, err := b.ins.Queue(bg, queueName)
	b.Must(err)
	counted := q.Today.Archived
	report, err = b.ins.Import(bg, queueName, seq(twice), nil)
	b.Must(err)
	if report.Done != 5 || len(report.Failed) != 5 {
		t.Fatalf("imported tasks that are twice in a file: %+v, expected that the second ones are refused", report)
	}
	if q, err = b.ins.Queue(bg, queueName); err != nil || q.Today.Archived != counted {
		t.Errorf("%d tasks count as archived, %v: expected %d, as before the import", q.Today.Archived, err, counted)
	}
	after := b.export()
	same := func(x, y inspect.Exported) bool {
		return x.State == y.State && x.ID == y.ID && x.Due.Equal(y.Due) && bytes.Equal(x.Message, y.Message) &&
			bytes.Equal(x.Info, y.Info)
	}
	if !slices.EqualFunc(before, after, same) {
		t.Errorf("after the import:\n%v\nbefore it:\n%v", after, before)
	}
	again := redistest.Dump(t, b.Conn, b.Name)
	for _, key := range []string{"", "_noti", "_scheduled", "_retry", "_parked", "_archived", "_tasks", "_info"} {
		if got, want := again[key], whole[key]; !equal(got, want) {
			t.Errorf("key %q after the import:\n%v\nbefore it:\n%v", key, got, want)
		}
	}
}

// equal compares values of keys.
func equal(x, y any) bool {
	switch x := x.(type) {
	case redistest.Hash:
		other, ok := y.(redistest.Hash)
		return ok && maps.Equal(x, other)
	case redistest.Zset:
		other, ok := y.(redistest.Zset)
		return ok && maps.Equal(x, other)
	case redistest.List:
		other, ok := y.(redistest.List)
		return ok && slices.Equal(x, other)
	}
	return x == nil && y == nil
}

// TestImportAgain imports tasks again that a program has left half filed when it was killed.
func TestImportAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	due := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	for _, id := range []string{"half", "other"} {
		_, err := b.q.With(delayed.TaskID(id), delayed.At(due)).Delay(welcome, 1, "en")
		b.Must(err)
	}
	tasks := b.export()
	half := time.Now().Add(10 * 365 * 24 * time.Hour).Truncate(time.Millisecond)
	for _, e := range tasks {
		b.Do("ZADD", b.Name+"_scheduled", half.UnixMilli(), e.ID)
	}
	b.Do("HSET", b.Name+"_tasks", "other", string(tasks[0].Message)+"\x00")
	report, err := b.ins.Import(bg, queueName, seq(tasks), nil)
	b.Must(err)
	if report.Done != 1 || len(report.Failed) != 1 || report.Failed[0].ID != "other" {
		t.Errorf("%+v: expected that one is mended, and another one left", report)
	}
	for id, want := range map[string]time.Time{"half": due, "other": half} {
		if at := int64(b.Int("ZSCORE", b.Name+"_scheduled", id)); at != want.UnixMilli() {
			t.Errorf("%s is scheduled at %v, expected %v", id, time.UnixMilli(at), want)
		}
	}
	b.Do("HSET", b.Name+"_tasks", "other", tasks[1].Message)
	tasks[1].Due = half
	if report, err = b.ins.Import(bg, queueName, seq(tasks), nil); err != nil || report.Done != 0 {
		t.Errorf("%+v, %v: expected that nothing is imported twice", report, err)
	}
}

func TestImportRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := b.q.With(delayed.TaskID("a")).Delay(welcome, 1, "en")
	b.Must(err)
	task := b.export()[0]
	at := time.Now().Add(time.Hour)
	wrong := []inspect.Exported{
		task, // it is there
		{State: state.Active, ID: "b", Message: task.Message},
		{State: state.Pending, ID: "b", Message: task.Message},          // another id than that of the message
		{State: state.Pending, ID: "b", Message: []byte("\xc1")},        // no message
		{State: state.Scheduled, ID: "a", Message: task.Message},        // no time
		{State: state.Scheduled, Due: at, Message: []byte("\xa5hello")}, // no id
		{State: state.Archived, Due: at, ID: strings.Repeat("x", 513), Message: []byte("\xc1")},
		{State: state.Archived, Due: at, ID: "large message", Message: bytes.Repeat([]byte("\xc1"), 1<<20+4097)},
		{State: state.Archived, Due: at, ID: "large info", Message: []byte("\xc1"), Info: make([]byte, 3<<20)},
	}
	report, err := b.ins.Import(bg, queueName, seq(wrong), nil)
	b.Must(err)
	if report.Done != 0 || len(report.Failed) != len(wrong) {
		t.Errorf("imported %+v: %v", report, report.Err())
	}
	if got := b.export(); len(got) != 1 {
		t.Errorf("the queue holds %d tasks, expected 1", len(got))
	}
}

func TestImportStops(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := b.q.DelayMany(bg, delayed.Call(welcome, 1, "en"), delayed.Call(welcome, 2, "en"))
	b.Must(err)
	tasks := b.export()
	_, err = b.ins.DoAll(bg, queueName, inspect.Delete(), inspect.Query{State: state.Pending}, nil)
	b.Must(err)
	report, err := b.ins.Import(bg, queueName, seq(tasks), func(r inspect.Report) bool { return r.Done < 1 })
	b.Must(err)
	if report.Done != 1 || len(b.export()) != 1 {
		t.Errorf("imported %+v after a stop at the first task", report)
	}
	records, err := b.ins.Audit(bg, 0, 1)
	b.Must(err)
	if records[0].Action != "import" || records[0].Done != 1 {
		t.Errorf("the audit log has %+v", records[0])
	}
}
