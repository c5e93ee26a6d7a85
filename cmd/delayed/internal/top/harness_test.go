package top

import (
	"context"
	"errors"
	"flag"
	"iter"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

// The flag -update writes the golden screens anew: make generate.
var update = flag.Bool("update", false, "write golden screens anew")

func TestMain(m *testing.M) {
	redistest.SideBySide()
	os.Exit(redistest.Main(m))
}

// noon is when everything is shown.
var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func before(d time.Duration) time.Time { return noon.Add(-d) }

// fake is a source without Redis. It notes what it is asked.
type fake struct {
	mu     sync.Mutex
	calls  []string
	err    error // of all that is read
	queues []inspect.Queue
	work   []inspect.Worker
	tasks  []inspect.Task // in the order of their lists
	events []inspect.Event
	speed  map[string]queueFlow
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

func (f *fake) Queue(_ context.Context, name string) (inspect.Queue, error) {
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

func (f *fake) pause(_ context.Context, queue string, paused bool) error {
	if paused {
		return f.note("pause", queue)
	}
	return f.note("resume", queue)
}

func (f *fake) order(_ context.Context, w *inspect.Worker, _ order) error {
	return f.note("order", w.ID)
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
	return f
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

// bench is a model with a fake source. Commands run at once, except those that wait for events.
type bench struct {
	t     *testing.T
	m     *model
	src   *fake
	waits []time.Duration // after which something is due
	msgs  chan tea.Msg
}

func newBench(t *testing.T, width, height int) *bench {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	b := &bench{t: t, src: newFake(), msgs: make(chan tea.Msg, 100)}
	b.m = newModel(ctx, Config{Where: "redis.example.com:6379/0", Unicode: true}, b.src)
	b.m.now = func() time.Time { return noon }
	b.m.after = func(d time.Duration, msg tea.Msg) tea.Cmd {
		b.waits = append(b.waits, d)
		return nil
	}
	t.Cleanup(func() {
		cancel()
		b.m.work.shut()
	})
	b.run(b.m.Init())
	b.send(tea.WindowSizeMsg{Width: width, Height: height})
	b.src.asked()
	return b
}

// send gives the model a message and runs what follows from it.
func (b *bench) send(msg tea.Msg) {
	b.t.Helper()
	_, cmd := b.m.Update(msg)
	b.m.View() // as the framework does
	b.run(cmd)
}

func (b *bench) run(cmd tea.Cmd) {
	b.t.Helper()
	if cmd == nil {
		return
	}
	if s, ok := b.m.current().screen.(*eventsScreen); ok && s.stream != nil || b.src.more != nil {
		go func() { b.msgs <- cmd() }()
		return
	}
	b.take(cmd())
}

// take gives the model what a command has returned.
func (b *bench) take(msg tea.Msg) {
	b.t.Helper()
	switch msg := msg.(type) {
	case nil, tea.QuitMsg:
	case tea.BatchMsg:
		for _, cmd := range msg {
			b.run(cmd)
		}
	default:
		b.send(msg)
	}
}

// until takes what commands return until a condition holds.
func (b *bench) until(what string, cond func() bool) {
	b.t.Helper()
	limit := time.NewTimer(redistest.Patience)
	defer limit.Stop()
	for !cond() {
		select {
		case msg := <-b.msgs:
			b.take(msg)
		case <-limit.C:
			b.t.Fatalf("waited in vain until %s:\n%s", what, b.screen())
		}
	}
}

// keys presses keys: words are names of keys, all else is typed.
func (b *bench) keys(keys ...string) {
	b.t.Helper()
	named := map[string]tea.KeyPressMsg{
		"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "tab": {Code: tea.KeyTab}, "up": {Code: tea.KeyUp},
		"down": {Code: tea.KeyDown}, "left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight},
		"pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown}, "home": {Code: tea.KeyHome},
		"end": {Code: tea.KeyEnd}, "space": {Code: tea.KeySpace, Text: " "}, "backspace": {Code: tea.KeyBackspace},
		"shift+tab": {Code: tea.KeyTab, Mod: tea.ModShift}, "ctrl+u": {Code: 'u', Mod: tea.ModCtrl},
		"ctrl+w": {Code: 'w', Mod: tea.ModCtrl}, "ctrl+r": {Code: 'r', Mod: tea.ModCtrl},
	}
	for _, key := range keys {
		if msg, ok := named[key]; ok {
			b.send(msg)
			continue
		}
		for _, r := range key {
			b.send(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
}

// screen is what is shown, without colours.
func (b *bench) screen() string { return sgr.ReplaceAllString(b.m.View().Content, "") }

// line returns the first line that has a text.
func (b *bench) line(text string) string {
	for line := range strings.SplitSeq(b.screen(), "\n") {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}

// shows fails the test unless the screen has all of some texts.
func (b *bench) shows(texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		if !strings.Contains(b.screen(), text) {
			b.t.Fatalf("the screen has no %q:\n%s", text, b.screen())
		}
	}
}

// hides fails the test if the screen has a text.
func (b *bench) hides(text string) {
	b.t.Helper()
	if strings.Contains(b.screen(), text) {
		b.t.Fatalf("the screen has %q:\n%s", text, b.screen())
	}
}

// asked fails the test unless the source was asked so.
func (b *bench) asked(want string) {
	b.t.Helper()
	if got := b.src.asked(); got != want {
		b.t.Fatalf("the source was asked %q, expected %q", got, want)
	}
}

// sgr are the sequences of colours.
var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

// hasAsked reports whether the source was asked so, since asked was called last.
func (b *bench) hasAsked(call string) bool {
	b.src.mu.Lock()
	defer b.src.mu.Unlock()
	return slices.Contains(b.src.calls, call)
}
