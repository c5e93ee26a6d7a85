package web_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web"
)

// schedule enqueues tasks that wait for an hour, the first one for less.
func (b *bench) schedule(n int) {
	b.T.Helper()
	_, err := b.q.With(delayed.In(50*time.Minute)).Enqueue(bg, delayed.NewPyTask("mail:welcome", []any{0}, nil))
	b.Must(err)
	calls := make([]*delayed.Task, n)
	for i := range calls {
		calls[i] = delayed.NewPyTask("mail:welcome", []any{i}, nil)
	}
	for calls = calls[1:]; len(calls) > 0; {
		n := min(len(calls), 1000)
		_, err := b.q.With(delayed.In(time.Hour)).DelayMany(bg, calls[:n]...)
		b.Must(err)
		calls = calls[n:]
	}
}

var operator = web.User{Name: "operator", Role: web.Operator}

// start begins a job and returns the address of its page.
func (b *bench) start(s state.Task, f inspect.Filter, a inspect.Action) string {
	b.T.Helper()
	id, err := b.h.StartJob(operator, queueName, s, f, a)
	b.Must(err)
	return "job?id=" + id
}

// ended waits until a page of a job has a text, and returns it.
func (b *bench) ended(address, text string) (page string) {
	b.T.Helper()
	b.Until("the job is "+text, func() bool {
		page = b.get(web.Viewer, address)
		return strings.Contains(page, ">"+text+"</span>")
	})
	return page
}

func TestJob(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.has(b.get(web.Viewer, "jobs"), "No jobs yet")
	b.schedule(25)
	at := b.start(state.Scheduled, inspect.Filter{Text: "(1"}, inspect.Delete()) // 1, 10 to 19
	page := b.ended(at, "done")
	b.has(page, "Looked at 25 of 25 scheduled tasks", "<dt>Done</dt><dd>11</dd>", "by operator", "100 %", " (1</span>")
	b.hasNot(page, "data-live", "Cancel the job")
	if n := b.Size("_scheduled"); n != 14 {
		t.Errorf("%d tasks are left, expected 14", n)
	}
	b.has(b.get(web.Viewer, "jobs"), at, "Do: some scheduled tasks of mail")
	b.has(b.do(web.Operator, at, "cancel", "id", strings.TrimPrefix(at, "job?id=")), "had ended already")
	if a := b.ask(web.Viewer, http.MethodGet, "job?id=x", nil); a.Status != http.StatusNotFound ||
		!strings.Contains(a.Body, "another one may know it") {
		t.Errorf("a job that another process may know answers %d: %s", a.Status, a.Body)
	}
	records, err := b.ins.Audit(bg, 0, 1)
	b.Must(err)
	if len(records) != 1 || records[0].Actor != "operator" || records[0].Done != 11 {
		t.Errorf("the audit log has %+v", records)
	}
}

// A job lists the tasks with which it goes wrong, to those that may see it.
func TestJobFailures(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(cfg *web.Config) { cfg.HideArguments = true })
	b.Do("RPUSH", b.Name, "no message") // without an id, so it cannot be canceled
	b.Do("RPUSH", b.Name+"_noti", 1)
	at := b.start(state.Pending, inspect.Filter{}, inspect.Cancel())
	b.ended(at, "done")
	page := b.get(web.Operator, at)
	b.has(page, `<dd class="error">1</dd>`, delayed.ErrNoID.Error(), "without an id")
	page = b.get(web.Viewer, at)
	b.has(page, `<dd class="error">1</dd>`, "Who may act sees which")
	b.hasNot(page, delayed.ErrNoID.Error())
}

// hold makes jobs wait at the second task of a list: the first is read when they begin. free lets them go on.
func hold(cfg *web.Config) (holding chan struct{}, free func()) {
	holding, let := make(chan struct{}, 1000), make(chan struct{})
	cfg.Redact = func(c *inspect.Contents) {
		if len(c.Args) > 0 && c.Args[0] != int64(0) {
			select {
			case holding <- struct{}{}:
			default:
			}
			<-let
		}
	}
	free = sync.OnceFunc(func() { close(let) })
	return holding, free
}

func TestJobCancel(t *testing.T) {
	t.Parallel()
	var holding chan struct{}
	var free func()
	b := newBench(t, func(cfg *web.Config) { holding, free = hold(cfg) })
	t.Cleanup(free) // before the dashboard waits for its jobs
	b.schedule(3000)
	at := b.start(state.Scheduled, inspect.Filter{}, inspect.Delete())
	id := strings.TrimPrefix(at, "job?id=")
	<-holding
	b.has(b.get(web.Operator, at), ">running</span>", "Cancel the job", "data-live")
	b.hasNot(b.get(web.Viewer, at), "Cancel the job")
	b.refused(web.Viewer, at, "cancel", "id", id)
	page := b.do(web.Operator, at, "cancel", "id", id)
	b.has(page, ">stopping</span>", "ends after the tasks that it is at", "Stopped by operator")
	b.hasNot(page, "Cancel the job")
	free()
	b.has(b.ended(at, "canceled"), "What was done stays done")
	if n := b.Size("_scheduled"); n == 0 || n == 3000 {
		t.Errorf("%d tasks are left, expected that it has stopped after a page", n)
	}
}

func TestJobsAtOnce(t *testing.T) {
	t.Parallel()
	var free func()
	b := newBench(t, func(cfg *web.Config) { _, free = hold(cfg) })
	t.Cleanup(free) // before the dashboard waits for its jobs
	b.schedule(2)
	f := inspect.Filter{Function: "nothing"}
	var first string
	for i := range web.MaxRunning {
		if at := b.start(state.Scheduled, f, inspect.Delete()); i == 0 {
			first = at
		}
	}
	_, err := b.h.StartJob(operator, queueName, state.Scheduled, f, inspect.Delete())
	if err == nil || !strings.Contains(err.Error(), "wait until one has ended") {
		t.Errorf("one job more than may run: %v", err)
	}
	free()
	b.ended(first, "done")
	for range web.MaxJobs {
		b.ended(b.start(state.Scheduled, f, inspect.Delete()), "done")
	}
	if a := b.ask(web.Viewer, http.MethodGet, first, nil); a.Status != http.StatusNotFound {
		t.Errorf("the oldest job is still there: %d", a.Status)
	}
	if n := strings.Count(b.get(web.Viewer, "jobs"), `<tr data-key="`); n != web.MaxJobs {
		t.Errorf("%d jobs are remembered, expected %d", n, web.MaxJobs)
	}
}

// Close stops jobs and waits for them; none begins afterwards.
func TestCloseEndsJobs(t *testing.T) {
	t.Parallel()
	var holding chan struct{}
	var free func()
	b := newBench(t, func(cfg *web.Config) { holding, free = hold(cfg) })
	t.Cleanup(free) // before the dashboard waits for its jobs
	b.schedule(3000)
	b.start(state.Scheduled, inspect.Filter{}, inspect.Delete())
	<-holding
	closed := make(chan error)
	go func() { closed <- b.h.Close() }()
	b.Until("the dashboard is closed", func() bool {
		return b.ask(web.Viewer, http.MethodGet, "jobs", nil).Status == http.StatusServiceUnavailable
	})
	select {
	case <-closed:
		t.Error("Close did not wait for the job")
	default:
	}
	free()
	b.Must(<-closed)
	left := b.Size("_scheduled")
	if left == 0 {
		t.Error("the job went on to its end")
	}
	if _, err := b.h.StartJob(operator, queueName, state.Scheduled, inspect.Filter{}, inspect.Delete()); err == nil {
		t.Error("a job began after Close")
	}
}
