package top

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// fake is a source without Redis. It notes what it is asked.
type fake struct {
	mu     sync.Mutex
	calls  []string
	err    error     // of all that is read
	limit  time.Time // until when Queue was to answer
	queues []inspect.Queue
	work   []inspect.Worker
	tasks  []inspect.Task // in the order of their lists
	events []inspect.Event
	speed  map[string]queueFlow
	short  bool // a page of active tasks has none of them, and is not the last one
	known  []inspect.Function
	crons  []inspect.Entry
	ticks  []delayed.PeriodicRun
	gather []inspect.Group
	log    []inspect.Record
	found  inspect.Diagnosis
	fault  error     // of lists that are not complete
	more   chan bool // if set, DoAll waits for it before each page
}

func (f *fake) note(call ...string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, strings.Join(call, " "))
	return f.err
}

// asked returns the calls since it was called last.
func (f *fake) asked() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := strings.Join(f.calls, "; ")
	f.calls = nil
	return calls
}

func (f *fake) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *fake) Names(context.Context) (names []string, err error) {
	for i := range f.queues {
		names = append(names, f.queues[i].Name)
	}
	return names, f.note("Names")
}

func (f *fake) Queues(context.Context) ([]inspect.Queue, error) { return f.queues, f.note("Queues") }

func (f *fake) Queue(ctx context.Context, name string) (inspect.Queue, error) {
	f.limit, _ = ctx.Deadline()
	for i := range f.queues {
		if f.queues[i].Name == name {
			return f.queues[i], f.note("Queue", name)
		}
	}
	return inspect.Queue{}, errors.Join(f.note("Queue", name), inspect.ErrNotFound)
}

func (f *fake) Workers(_ context.Context, queues ...string) ([]inspect.Worker, error) {
	return f.work, f.note(append([]string{"Workers"}, queues...)...)
}

func (f *fake) Tasks(_ context.Context, queue string, q inspect.Query) (inspect.Page, error) {
	err := f.note("Tasks", queue, q.State.String(), q.Cursor)
	page := inspect.Page{}
	began := q.Cursor == ""
	for i := range f.tasks {
		t := &f.tasks[i]
		switch {
		case t.Queue != queue || t.State != q.State:
			continue
		case !began:
			began = t.ID == q.Cursor
			continue
		case len(page.Tasks) == q.Limit:
			page.Cursor = page.Tasks[len(page.Tasks)-1].ID
			return page, err
		}
		page.Scanned++
		if f.short && q.State == state.Active {
			page.Cursor = "more"
			return page, err
		}
		if q.Filter.Match(t, noon) {
			page.Tasks = append(page.Tasks, *t)
		}
	}
	return page, err
}

func (f *fake) Task(_ context.Context, queue, id string) (inspect.Task, error) {
	err := f.note("Task", queue, id)
	for i := range f.tasks {
		if f.tasks[i].ID == id {
			return f.tasks[i], err
		}
	}
	return inspect.Task{}, errors.Join(err, inspect.ErrNotFound)
}

func (f *fake) Find(_ context.Context, id string) (found []inspect.Task, err error) {
	err = f.note("Find", id)
	for i := range f.tasks {
		if f.tasks[i].ID == id {
			found = append(found, f.tasks[i])
		}
	}
	return found, err
}

func (f *fake) Functions(_ context.Context, queues ...string) ([]inspect.Function, error) {
	return f.known, f.note(append([]string{"Functions"}, queues...)...)
}

func (f *fake) Watch(ctx context.Context, queues ...string) iter.Seq2[inspect.Event, error] {
	return func(yield func(inspect.Event, error) bool) {
		if err := f.note(append([]string{"Watch"}, queues...)...); err != nil {
			yield(inspect.Event{}, err)
			return
		}
		for _, e := range f.events {
			if !yield(e, nil) {
				return
			}
		}
		<-ctx.Done()
		_ = f.note("Watch ends") // it is the end
	}
}

func (f *fake) Do(_ context.Context, queue string, a inspect.Action, ids ...string) (inspect.Report, error) {
	return inspect.Report{Done: len(ids)}, f.note("Do", queue, a.String(), strings.Join(ids, ","))
}

func (f *fake) DoAll(
	_ context.Context, queue string, a inspect.Action, q inspect.Query, progress func(inspect.Report) bool,
) (r inspect.Report, err error) {
	err = f.note("DoAll", queue, a.String(), q.State.String(), q.Filter.Function)
	for range 4 {
		if f.more != nil {
			<-f.more
		}
		r.Scanned, r.Done = r.Scanned+10, r.Done+10
		if !progress(r) {
			return r, err
		}
	}
	return r, err
}

func (f *fake) flows(_ context.Context, s span, queues []string) (map[string]queueFlow, error) {
	return f.speed, f.note(append([]string{"flows", spanOf[s].name}, queues...)...)
}

func (f *fake) Pause(_ context.Context, queue string) error { return f.note("pause", queue) }

func (f *fake) Resume(_ context.Context, queue string) error { return f.note("resume", queue) }

func (f *fake) OrderWorker(_ context.Context, id string, o inspect.Order) error {
	return f.note("order", string(o), id)
}

func (f *fake) Entries(_ context.Context, queues ...string) ([]inspect.Entry, error) {
	if err := f.note(append([]string{"Entries"}, queues...)...); err != nil {
		return nil, err
	}
	return f.crons, f.fault
}

func (f *fake) EntryHistory(_ context.Context, queue, name string) ([]delayed.PeriodicRun, error) {
	return f.ticks, f.note("EntryHistory", queue, name)
}

func (f *fake) RunEntry(_ context.Context, queue, name string) (*delayed.Ref, error) {
	return nil, f.note("runEntry", queue, name)
}

func (f *fake) PauseEntry(_ context.Context, queue, name string) error {
	return f.note("pauseEntry", queue, name)
}

func (f *fake) ResumeEntry(_ context.Context, queue, name string) error {
	return f.note("resumeEntry", queue, name)
}

func (f *fake) RemoveEntry(_ context.Context, queue, name string) error {
	return f.note("removeEntry", queue, name)
}

func (f *fake) Groups(context.Context, ...string) ([]inspect.Group, error) {
	if err := f.note("Groups"); err != nil {
		return nil, err
	}
	return f.gather, f.fault
}

func (f *fake) Audit(_ context.Context, skip, n int) ([]inspect.Record, error) {
	return f.log[min(skip, len(f.log)):min(skip+n, len(f.log))], f.note("Audit", strconv.Itoa(skip), strconv.Itoa(n))
}

// hostile is a text that no terminal should get as it is.
const hostile = "full\nof\x1b[31m red\u202e\u009b\xff"

// newFake returns a source with something on every screen.
func newFake() *fake {
	busy := flow{
		total: 2400, failures: 120, perSecond: 20, failPercent: 5, wait50: time.Millisecond,
		wait95: 40 * time.Millisecond, run50: 12 * time.Millisecond, run95: 250 * time.Millisecond,
		run99: 2 * time.Second,
	}
	for i := range bars {
		busy.runs[i], busy.failed[i] = uint64(50+10*i), uint64(i%4)
	}
	slow := flow{total: 3, perSecond: 0.025, run50: time.Minute, run95: 2 * time.Minute, run99: 2 * time.Minute}
	slow.runs[bars-1] = 3
	fns := []functionFlow{
		{flow: busy, queue: "mail", path: "example.com/app/mail.Welcome"}, {flow: slow, queue: "mail", path: ""},
	}
	day := inspect.Counts{Processed: 98765, Failed: 432}
	f := &fake{
		queues: []inspect.Queue{
			{
				Name: "billing", Pending: 30, Latency: 75 * time.Second, Archived: 12, Scheduled: 1234567,
				Workers: 0, Today: day,
			},
			{
				Name: "mail", Pending: 3, Active: 2, Retry: 60, Archived: 1, Workers: 1, Parked: 1, Completed: 7,
				Latency: 250 * time.Millisecond, Today: day,
			},
			{Name: "reports", Paused: before(time.Hour), Pending: 1, Workers: 1, Latency: time.Hour},
		},
		speed: map[string]queueFlow{
			"mail": {flow: busy, functions: fns}, "billing": {},
			"reports": {flow: slow, functions: []functionFlow{
				{flow: slow, queue: "reports", path: "app.reports:monthly"},
			}},
		},
		work: []inspect.Worker{
			{
				ID: "1d7df465b91b8f0d10194c57f7bccb49", Host: "web-7.example.com", PID: 4711, Concurrency: 20,
				Started: before(3 * time.Hour), State: state.Running, Program: "shop v1.2.3", Version: "v0.1.0",
				Memory: 91 << 20,
				Queues: []inspect.WorkerQueue{{Name: "mail", Alive: 12 * time.Second, Claims: 2}},
				Order:  "mail=3, reports=1 (weighted)",
				Running: []inspect.Running{
					{Queue: "mail", ID: "a-1", Function: "app/mail.Digest", Started: before(12 * time.Minute)},
					{Queue: "mail", ID: "a-2", Function: "app/mail.Welcome", Started: before(3 * time.Second)},
				},
			},
			{
				ID: "9ab8ce1c74e3f6816523a56f233575fa", Host: "web-8.example.com", PID: 99,
				Queues: []inspect.WorkerQueue{{Name: "mail", Claims: 4}},
			},
		},
		events: []inspect.Event{
			{Kind: event.TaskStarted, Wait: 20 * time.Millisecond},
			{Kind: event.TaskDone, Took: 12 * time.Millisecond},
			{Kind: event.TaskFailed, Took: time.Second, Error: "smtp: mailbox full\x1b[31m", Reason: "failed"},
			{Kind: event.TaskRetried, Wait: 40 * time.Second, Missed: 7},
			{Kind: event.WorkerPaused},
		},
	}
	for i := range f.events {
		e := &f.events[i]
		e.At, e.Queue, e.Worker = noon.Add(time.Duration(i)*time.Millisecond), "mail", f.work[0].ID
		if e.Kind != event.WorkerPaused {
			e.ID, e.Function, e.Attempt = "r-00", "example.com/app/mail.Welcome", 1
		}
	}
	f.addTasks()
	f.addLists()
	return f
}

// addLists adds periodic entries, groups and records.
func (f *fake) addLists() {
	f.crons = []inspect.Entry{
		{Queue: "mail", PeriodicEntry: delayed.PeriodicEntry{
			Name: "digest", Spec: "30 7 * * mon-fri", Zone: "Europe/Berlin", Function: "example.com/app/mail.Digest",
			Owner: "shop", Next: noon.Add(18 * time.Hour), Previous: before(6 * time.Hour),
			Overlap: delayed.OverlapQueue,
			CatchUp: 3, Jitter: time.Minute, From: before(24 * time.Hour),
		}},
		{Queue: "reports", PeriodicEntry: delayed.PeriodicEntry{
			Name: "monthly", Spec: "@monthly", Zone: "UTC", Function: "app.reports:monthly", Paused: true, CatchUp: -1,
		}},
	}
	f.ticks = []delayed.PeriodicRun{
		{Tick: before(6 * time.Hour), At: before(6 * time.Hour), ID: "r-00"},
		{Tick: before(30 * time.Hour), At: before(29 * time.Hour), ID: "t-2", Skipped: "overlap"},
		{Tick: before(54 * time.Hour), At: before(48 * time.Hour), Skipped: "missed"},
	}
	f.known = []inspect.Function{{
		Queue: "mail", Path: "example.com/app/mail.Welcome",
		Parameters: []inspect.Parameter{{Type: "int64"}, {Type: "string"}, {Type: "mail.User"}},
	}}
	f.gather = []inspect.Group{
		{
			Queue: "mail", Key: "search", Function: "example.com/app/search.Index", Size: 1200,
			Due: noon.Add(40 * time.Second),
		},
		{
			Queue: "reports", Key: "ann", Function: "example.com/app/mail.Digest", Size: 1,
			Due: noon.Add(5 * time.Second),
		},
	}
	f.found = inspect.Diagnosis{At: noon, Queues: 3, Workers: 1, Problems: []inspect.Problem{
		{
			Kind: inspect.ProblemNoWorkers, Severity: inspect.SeverityError, Queue: "billing", Since: before(time.Hour),
			Text: "30 tasks wait, and no worker serves it", Command: "delayed workers ls",
			Advice: "start a worker with this queue, and the same URL and prefix",
		},
		{
			Kind: inspect.ProblemParked, Severity: inspect.SeverityError, Queue: "mail", Others: 2,
			Text: "1 task is parked because no worker can run it", Advice: "deploy a worker that knows the function",
		},
		{
			Kind: inspect.ProblemPaused, Severity: inspect.SeverityWarning, Queue: "reports", Since: before(time.Hour),
			Text: "paused, and 1 task waits", Advice: "resume it", Command: "delayed resume reports",
		},
		{
			Kind: inspect.ProblemSetting, Severity: inspect.SeverityWarning, Text: "no append-only file",
			Advice: "docs/SERVERS.md has the settings that tasks need",
		},
	}}
	f.log = []inspect.Record{
		{At: before(time.Minute), Actor: "ann@desk", Action: "run", Queue: "mail", IDs: []string{"r-00"}, Done: 1},
		{
			At: before(time.Hour), Actor: "bob@desk", Action: "move to urgent", Queue: "mail", State: "archived",
			Done:   42,
			Filter: &inspect.Filter{Function: "Render"}, Failed: 2,
		},
		{
			At: before(2 * time.Hour), Actor: "bob@desk", Action: "delete", Queue: "billing",
			IDs: []string{"b-1", "b-2"}, More: 3, Done: 5,
		},
	}
}

// addTasks adds tasks of the queue mail.
func (f *fake) addTasks() {
	add := func(in state.Task, id, call string, change func(*inspect.Task)) {
		t := inspect.Task{
			Queue: "mail", State: in, ID: id, Size: 89, EnqueuedAt: before(90 * time.Second), Attempt: 1,
		}
		t.Function, t.Call = "example.com/app/mail.Welcome", call
		if change != nil {
			change(&t)
		}
		f.tasks = append(f.tasks, t)
	}
	for i := range 3 {
		add(state.Pending, "p-"+string(rune('0'+i)), `mail.Welcome(1, "en")`, nil)
	}
	add(state.Pending, "", "legacy.Call()", nil)
	add(state.Active, "a-1", `mail.Digest("weekly")`, func(t *inspect.Task) {
		t.Worker, t.Claimed, t.Started = f.work[0].ID, before(12*time.Minute), before(12*time.Minute)
		t.Done, t.Total, t.Note = 42, 120, "rows of customers.csv"
	})
	retries := 3
	for i := range 60 {
		add(state.Retry, "r-"+string(rune('0'+i/10))+string(rune('0'+i%10)), `mail.Welcome(42, "en", {Name: "Ann"})`,
			func(t *inspect.Task) {
				t.Attempt, t.Error, t.Reason = 3, "smtp: mailbox full of user 42, tried at three servers", "failed"
				t.Due, t.At, t.FirstFailed = noon.Add(time.Hour), before(time.Second), before(time.Minute)
				t.Options = inspect.Options{MaxRetry: &retries, Timeout: time.Minute, Lock: "u:x"}
				t.Headers = map[string]string{"tenant": "acme"}
				t.Args = []any{int64(42), "en", map[string]any{"Name": "Ann"}}
				t.Stack, t.Worker = "main.Welcome\n\tmain.go:12", f.work[0].ID
				t.Failures = []inspect.FailedAttempt{
					{Attempt: 1, At: t.FirstFailed, Worker: f.work[1].ID, Error: "smtp: no route to host"},
					{Attempt: 2, At: t.At, Worker: t.Worker, Error: t.Error, Stack: t.Stack},
				}
			})
	}
	add(state.Archived, "x"+hostile, "mail.Welcome("+hostile+")", func(t *inspect.Task) {
		t.Error, t.Reason, t.Stack, t.Note = hostile, hostile, hostile, hostile
		t.Headers, t.Function = map[string]string{hostile: hostile}, hostile
		t.Failures = []inspect.FailedAttempt{{Attempt: 1, Worker: hostile, Error: hostile, Stack: hostile}}
	})
	add(state.Completed, "c-1", "mail.Welcome(7)", func(t *inspect.Task) {
		t.Result, t.Began, t.At = map[string]any{"sent": 3}, before(time.Minute), before(time.Minute)
	})
}

func (f *fake) diagnose(context.Context) (inspect.Diagnosis, error) {
	return f.found, f.note("diagnose")
}

func (f *fake) FireGroup(_ context.Context, queue, key, function string) (int, error) {
	return 1, f.note("fireGroup", queue, key, function)
}
