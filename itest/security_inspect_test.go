//go:build unix

package itest_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/answer"
	"github.com/godelayed/delayed/state"
)

// actAs does everything that package inspect does, as the console.
func actAs(ctx context.Context, t *testing.T, s *site, worker string) {
	t.Helper()
	rdb := s.dialAs(t, "console")
	ins, err := inspect.New(rdb, inspect.Config{})
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, err error) {
		t.Helper()
		s.tried[what] = true
		if err != nil {
			t.Errorf("console, %s: %v", what, err)
		}
	}
	q := delayed.NewQueue(s.queue, rdb)
	check("Set", q.Periodic().Set(ctx, delayed.Entry{
		Name: "acted", Spec: "@yearly", Task: delayed.NewGoTask("acl.nobody"),
	}))
	check("PauseEntry", ins.PauseEntry(ctx, s.queue, "acted"))
	check("ResumeEntry", ins.ResumeEntry(ctx, s.queue, "acted"))
	run, err := ins.RunEntry(ctx, s.queue, "acted")
	check("RunEntry", err)
	check("RemoveEntry", ins.RemoveEntry(ctx, s.queue, "acted"))
	_, err = ins.Enqueue(ctx, s.queue, delayed.NewGoTask("acl.gathers", []int{1}), delayed.Group("acted"))
	check("Enqueue", err)
	_, err = ins.FireGroup(ctx, s.queue, "acted", "")
	check("FireGroup", err)
	check("OrderWorker", ins.OrderWorker(ctx, worker, inspect.OrderPause))
	check("OrderWorker", ins.OrderWorker(ctx, worker, inspect.OrderResume))
	check("Pause", ins.Pause(ctx, s.queue))
	for i, a := range []inspect.Action{
		inspect.Edit(delayed.NewGoTask("acl.acted", 2)), inspect.Reschedule(time.Now().Add(time.Hour)),
		inspect.Archive(), inspect.RunNow(), inspect.Cancel(), inspect.Delete(),
	} {
		id := fmt.Sprint("acted-", i)
		_, err := ins.Enqueue(ctx, s.queue, delayed.NewGoTask("acl.acted", 1), delayed.TaskID(id),
			delayed.In(time.Hour))
		check("Enqueue", err)
		report, err := ins.Do(ctx, s.queue, a, id)
		check("Do", err)
		if check(a.String(), errors.Join(err, report.Err())); report.Done != 1 {
			t.Errorf("console, %v: %+v", a, report)
		}
		_, err = ins.DoAll(ctx, s.queue, inspect.Delete(), inspect.Query{
			State: state.Scheduled, Filter: inspect.Filter{Function: "acl.acted"},
		}, nil)
		check("DoAll", err)
	}
	for _, in := range []state.Task{state.Archived, state.Pending} {
		_, err = ins.DoAll(ctx, s.queue, inspect.Delete(), inspect.Query{
			State: in, Filter: inspect.Filter{Function: "acl.acted"},
		}, nil)
		check("DoAll", err)
	}
	_, err = ins.Do(ctx, s.queue, inspect.Delete(), run.ID())
	check("Delete", err)
	check("SetWeight", ins.SetWeight(ctx, s.queue, 3))
	check("Resume", ins.Resume(ctx, s.queue))
	records, err := ins.Audit(ctx, 0, 100)
	check("Audit", err)
	if len(records) < 20 {
		t.Errorf("console: found %d records in the audit log, expected at least 20", len(records))
	}
}

// endAs does what ends workers and the queue, as the console, and checks that every method of Inspector was tried as
// one of the page's users.
func endAs(ctx context.Context, t *testing.T, s *site) {
	t.Helper()
	ins, err := inspect.New(s.dialAs(t, "console"), inspect.Config{})
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, err error) {
		t.Helper()
		s.tried[what] = true
		if err != nil {
			t.Errorf("console, %s: %v", what, err)
		}
	}
	target := s.queue + "_slow" // its keys are among those that the page names
	_, err = ins.Enqueue(ctx, s.queue, delayed.NewGoTask("acl.moved", 1), delayed.TaskID("goes"), delayed.In(time.Hour))
	check("Enqueue", err)
	moved, err := ins.Do(ctx, s.queue, inspect.MoveTo(target), "goes")
	if check("MoveTo", errors.Join(err, moved.Err())); moved.Done != 1 {
		t.Errorf("console, MoveTo: %+v", moved)
	}
	check("DeleteQueue", ins.DeleteQueue(ctx, target, true))
	check("Restart", ins.Restart(ctx, s.queue))
	//nolint:contextcheck // it runs until the test ends
	w := runWorker(t, s.dialAs(t, "worker"), delayed.WorkerConfig{Queues: delayed.Strict{s.queue}},
		delayed.Func(func() {}, delayed.Name("acl.nothing")))
	waitFor(t, "the worker to run", func() bool { return w.Status().State == state.Running })
	check("OrderWorker", ins.OrderWorker(ctx, w.ID(), inspect.OrderQuiet))
	waitFor(t, "the worker to be quiet", func() bool { return w.Status().State == state.Quiet })
	check("OrderWorker", ins.OrderWorker(ctx, w.ID(), inspect.OrderStop))
	waitFor(t, "the worker to stop", func() bool { return w.Status().State == state.Stopped })
	_, err = ins.Enqueue(ctx, s.queue, delayed.NewGoTask("acl.moved", 1), delayed.TaskID("moved"),
		delayed.In(time.Hour))
	check("Enqueue", err)
	task, err := ins.Task(ctx, s.queue, "moved")
	check("Task", err)
	exported, err := task.Export()
	check("Export", err)
	report, err := ins.Do(ctx, s.queue, inspect.Delete(), "moved")
	check("Do", errors.Join(err, report.Err()))
	report, err = ins.Import(ctx, s.queue, func(yield func(inspect.Exported, error) bool) {
		yield(exported, nil)
	}, nil)
	if check("Import", errors.Join(err, report.Err())); report.Done != 1 {
		t.Errorf("console, Import: %+v", report)
	}
	check("DeleteQueue", ins.DeleteQueue(ctx, s.queue, true))
	of := reflect.TypeFor[*inspect.Inspector]()
	for i := range of.NumMethod() {
		if name := of.Method(i).Name; !s.tried[name] {
			t.Errorf("Inspector.%s was not tried as any of the users: add it to what this test does", name)
		}
	}
}

// refuseObserver finds that an observer is refused at the act, before anything is noted.
func refuseObserver(ctx context.Context, t *testing.T, s *site) {
	t.Helper()
	ins, err := inspect.New(s.dialAs(t, "observer"), inspect.Config{})
	if err != nil {
		t.Fatal(err)
	}
	before, err := ins.Audit(ctx, 0, 100)
	if err != nil {
		t.Error(err)
	}
	for what, err := range map[string]error{
		"Pause": ins.Pause(ctx, s.queue), "SetWeight": ins.SetWeight(ctx, s.queue, 1),
		"RemoveEntry": ins.RemoveEntry(ctx, s.queue, "never"),
	} {
		if answer.Code(err) != "NOPERM" || strings.Contains(err.Error(), "audit") {
			t.Errorf("observer, %s: found %v, expected that Redis refuses it", what, err)
		}
	}
	if after, err := ins.Audit(ctx, 0, 100); err != nil || len(after) != len(before) {
		t.Errorf("the audit log has %d records, expected %d (%v)", len(after), len(before), err)
	}
}

// inspectAs reads everything that package inspect reads, as the observer, who may change nothing. run enqueues a task
// that a worker runs.
func inspectAs(ctx context.Context, t *testing.T, s *site, id string, run func()) {
	t.Helper()
	ins, err := inspect.New(s.dialAs(t, "observer"), inspect.Config{})
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, err error) {
		t.Helper()
		s.tried[what] = true
		if err != nil {
			t.Errorf("observer, %s: %v", what, err)
		}
	}
	queues, err := ins.Queues(ctx)
	check("Queues", err)
	if len(queues) != 1 || queues[0].Name != s.queue {
		t.Errorf("observer: found the queues %+v", queues)
	}
	for _, in := range inspect.States {
		for _, newest := range []bool{false, true} {
			for _, err := range ins.All(ctx, s.queue, inspect.Query{State: in, NewestFirst: newest, Limit: 1}) {
				check("All", err)
			}
		}
	}
	_, err = ins.Queue(ctx, s.queue)
	check("Queue", err)
	_, err = ins.Names(ctx)
	check("Names", err)
	_, err = ins.Groups(ctx)
	check("Groups", err)
	entries, err := ins.Entries(ctx)
	check("Entries", err)
	if len(entries) == 0 {
		t.Error("observer: found no periodic entry")
	}
	for _, e := range entries {
		_, err = ins.EntryHistory(ctx, s.queue, e.Name)
		check("EntryHistory", err)
	}
	_, err = ins.Backlog(ctx)
	check("Backlog", err)
	_, err = ins.Diagnose(ctx)
	check("Diagnose", err)
	_, err = ins.Tasks(ctx, s.queue, inspect.Query{State: state.Archived})
	check("Tasks", err)
	_, err = ins.Task(ctx, s.queue, id)
	check("Task", err)
	_, err = ins.Find(ctx, id)
	check("Find", err)
	_, err = ins.Workers(ctx)
	check("Workers", err)
	_, err = ins.Functions(ctx)
	check("Functions", err)
	_, err = ins.History(ctx, s.queue, 7)
	check("History", err)
	_, err = ins.Memory(ctx, s.queue)
	check("Memory", err)
	_, err = ins.Audit(ctx, 0, 10)
	check("Audit", err)
	_, err = ins.Metrics(ctx, s.queue, inspect.Total, time.Time{}, time.Time{})
	check("Metrics", err)
	_, err = ins.Lateness(ctx, s.queue)
	check("Lateness", err)
	_, err = ins.ScriptTimes(ctx)
	check("ScriptTimes", err)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		for _, err := range ins.Watch(ctx, s.queue) {
			check("Watch", err)
			return
		}
	}()
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		select {
		case <-tick.C:
			run()
		case <-answered:
			check("Watch", ctx.Err())
			tick.Stop()
			return
		}
	}
}
