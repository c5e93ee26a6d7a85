package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web"
)

// TestAPIActions does everything that the API can do.
func TestAPIActions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.full()
	const post, put, del = http.MethodPost, http.MethodPut, http.MethodDelete
	op, admin := web.Operator, web.Admin
	b.same(b.document(op, 200, post, "queues/mail/pause", ""), `{"action":"pause","done":["mail"]}`)
	b.same(b.document(op, 200, post, "tasks/dead/run", "{}"), "1", "reports", 0, "done")
	b.same(b.read("tasks/dead"), `"pending"`, "tasks", 0, "state")
	b.problem(op, 409, post, "tasks/dead/run", "", "cannot run")
	b.document(op, 200, post, "tasks/dead/archive?queue=mail", "")
	b.document(op, 200, post, "tasks/later/reschedule", `{"when":"2h"}`)
	text, _ := at(b.read("tasks/later"), "tasks", 0, "due").(string)
	due, err := time.Parse(time.RFC3339, text)
	if err != nil || time.Until(due) < 119*time.Minute {
		t.Errorf("the task is due at %v (%v)", due, err)
	}
	b.document(op, 200, post, "tasks/later/move", `{"to":"slow"}`)
	b.same(b.read("tasks/later"), `"slow"`, "tasks", 0, "queue")
	b.same(b.document(op, 200, post, "actions", `{"action":"archive","queue":"mail","ids":["again","none"]}`),
		`1`, "reports", 0, "done")
	b.same(b.read("audit?limit=1"), `"operator"`, "records", 0, "actor")
	b.document(op, 200, post, "tasks/later/cancel", "")
	b.document(op, 200, del, "tasks/again?queue=mail", "")
	b.problem(web.Viewer, 404, http.MethodGet, "tasks/again", "", "no queue holds a task")

	b.document(admin, 200, put, "tasks/dead/arguments", `{"args":["other"]}`)
	b.same(b.read("tasks/dead"), `["other"]`, "tasks", 0, "args")
	b.problem(admin, 400, put, "tasks/dead/arguments", `{"args":[1]}`, "expected a text in quotes, found 1")
	b.problem(admin, 400, put, "tasks/dead/arguments", `{"args":["a"],"kwargs":{}}`, "only of Python functions")
	b.document(admin, 200, put, "tasks/dead/arguments", `{"args":["third"],"unchecked":true}`)

	b.document(op, 200, put, "queues/mail/weight", `{"weight":7}`)
	b.same(b.read("queues/mail"), "7", "queue", "weight")
	b.document(op, 200, post, "queues/mail/resume", "")
	b.document(op, 200, post, "workers/"+w.ID()+"/pause", "")
	b.Until("the worker pauses", func() bool { return w.Status().State == state.Paused })
	b.document(op, 200, post, "workers/"+w.ID()+"/resume", "")
	b.Until("the worker goes on", func() bool { return w.Status().State != state.Paused })
	b.document(op, 200, post, "queues/mail/entries/digest/pause", "")
	b.same(b.read("entries"), "true", "entries", 0, "paused")
	b.document(op, 200, post, "queues/mail/entries/digest/resume", "")
	run := b.api(op, post, "queues/mail/entries/digest/run", "")
	if !strings.HasPrefix(run.Header.Get("Location"), "../../../../tasks/digest") || run.Status != 201 {
		t.Errorf("the task of an entry is at %q: %s", run.Header.Get("Location"), run.Body)
	}
	b.document(op, 200, post, "queues/mail/groups/fire", `{"key":"g"}`)
	b.problem(op, 404, post, "queues/mail/groups/fire", `{"key":"none"}`, "no group")
	b.document(admin, 200, del, "queues/mail/entries/digest", "")
	b.problem(admin, 409, del, "queues/mail", "", "living workers")
	b.document(admin, 200, post, "workers/"+w.ID()+"/stop", "")
	b.Until("the worker has stopped", func() bool {
		q, err := b.ins.Queue(bg, queueName)
		b.Must(err)
		return q.Workers == 0
	})
	b.problem(op, 404, post, "workers/"+w.ID()+"/quiet", "", "no living worker")
	b.problem(admin, 409, del, "queues/mail", "", "holds")
	b.document(admin, 200, del, "queues/mail?force=true", "")
	b.problem(web.Viewer, 404, http.MethodGet, "queues/mail", "", "nobody has enqueued")
}

// TestAPIEnqueues enqueues calls of Go and Python, with options.
func TestAPIEnqueues(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work(delayed.WorkerConfig{}, failSecretly, sumOf)
	enqueue := func(body string) answer { return b.api(web.Admin, http.MethodPost, "tasks", body) }
	a := enqueue(`{"function":"sumOf","args":[1,2],"options":{"id":"s/1","in":"1h","headers":{"a":"b"},"timeout":"90s",
		"max_retry":0,"backoff":["1s","1m"],"retention":"7d","deadline":"2100-01-01T00:00:00Z","on_conflict":"fail"}}`)
	if a.Status != 201 || a.Header.Get("Location") != "tasks/s%2F1?queue=mail" {
		t.Fatalf("found %d at %q: %s", a.Status, a.Header.Get("Location"), a.Body)
	}
	v := b.read(a.Header.Get("Location"))
	b.same(v, "[[1,2]]", "tasks", 0, "args")
	b.same(v, `{"a":"b"}`, "tasks", 0, "headers")
	b.same(v, "90", "tasks", 0, "options", "timeout_seconds")
	b.same(v, "0", "tasks", 0, "options", "max_retry")
	b.same(v, "[1,60]", "tasks", 0, "options", "backoff_seconds")
	b.same(v, "604800", "tasks", 0, "options", "retention_seconds")
	b.isProblem(enqueue(`{"function":"sumOf","args":[1],"options":{"id":"s/1"}}`), 409, "the same id")
	for body, says := range map[string]string{
		`{}`:                                               "function: expected the path",
		`{"function":"m:f"}`:                               "expected its queue too",
		`{"function":"sumOf","args":["x"]}`:                "expected a whole number",
		`{"function":"failSecretly","args":[]}`:            "expected the arguments of",
		`{"function":"sumOf","kwargs":{}}`:                 "kwargs: expected them only of Python",
		`{"function":"sumOf","options":{"in":"soon"}}`:     `options.in: expected a duration`,
		`{"function":"sumOf","options":{"in":"-1h"}}`:      `not negative`,
		`{"function":"sumOf","options":{"at":"tomorrow"}}`: `options.at: expected a time`,
		`{"function":"sumOf","options":{"max_retry":-1}}`:  "0 or more",
		`{"function":"sumOf","options":{"max_retry":99999999999999999999}}`: "field options.max_retry: expected a " +
			"whole number",
		`{"function":"sumOf","options":{"on_conflict":"win"}}`:             "expected fail, skip or replace",
		`{"function":"sumOf","options":{"unique_key":"k"}}`:                "options.unique_key: expected unique too",
		`{"function":"sumOf","options":{"debounce":"1s","in":"1s"}}`:       "Debounce",
		`{"function":"sumOf","options":{"priority":1}}`:                    `unknown field "priority"`,
		`{"function":"sumOf","queue":"` + strings.Repeat("q", 2000) + `"}`: "queue",
		`{"function":"mod:f","queue":"mail","kwargs":[1]}`:                 "expected a JSON object",
	} {
		b.isProblem(enqueue(body), 400, body, says)
	}
	b.document(web.Admin, 201, http.MethodPost, "tasks",
		`{"function":"web_test.sumOf","args":[1,2],"options":{"id":"now","retention":"1h"}}`)
	b.Until("the sum is there", func() bool { return at(b.read("tasks/now"), "tasks", 0, "result") == 3.0 })
	b.isProblem(enqueue(`{"function":"nothing"}`), 404, "nothing", "no living worker has published")
	b.isProblem(enqueue(`{"function":"sumOf","queue":"other"}`), 404, "other", "no living worker has published")
	b.document(web.Admin, 201, http.MethodPost, "tasks",
		`{"function":"app.tasks:send","queue":"py","args":[1,[2]],"kwargs":{"to":"ann"},"options":{"id":"p"}}`)
	b.same(b.read("tasks/p"), `{"to":"ann"}`, "tasks", 0, "kwargs")
	b.document(web.Admin, 200, http.MethodPut, "tasks/p/arguments", `{"args":[3]}`)
	b.same(b.read("tasks/p"), `[3]`, "tasks", 0, "args")
	b.same(b.read("tasks/p"), `{"to":"ann"}`, "tasks", 0, "kwargs")
	b.document(web.Admin, 200, http.MethodPut, "tasks/p/arguments", `{"args":[3],"kwargs":{"to":"bob"}}`)
	b.same(b.read("tasks/p"), `{"to":"bob"}`, "tasks", 0, "kwargs")
	b.document(web.Admin, 201, http.MethodPost, "tasks",
		`{"function":"example.com/new.Thing","queue":"new","args":[1.5],"unchecked":true,"options":{"id":"n"}}`)
	b.same(b.read("tasks/n"), `[1.5]`, "tasks", 0, "args")
}

// TestAPIJobs acts on all tasks that match, and cancels a job.
func TestAPIJobs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 10 {
		_, err := b.q.With(delayed.TaskID(fmt.Sprint(i)), delayed.In(time.Hour)).Delay(combine, []string{
			fmt.Sprint(i % 2),
		})
		b.Must(err)
	}
	start := func(body string) answer { return b.api(web.Operator, http.MethodPost, "jobs", body) }
	for body, says := range map[string]string{
		`{"action":"explode","queue":"mail","state":"scheduled"}`: "action: expected one of " +
			"run",
		`{"action":"run","queue":"mail","state":"pending"}`:                             "state: expected one",
		`{"action":"run","queue":"mail"}`:                                               "state: expected one",
		`{"action":"run","queue":"","state":"scheduled"}`:                               "queue",
		`{"action":"run","queue":"mail","state":"scheduled","filter":{"functon":"x"}}`:  `unknown field "functon"`,
		`{"action":"run","queue":"mail","state":"scheduled","filter":{"older":"long"}}`: "Older than",
		`{"action":"run","queue":"mail","state":"scheduled","to":"slow"}`: "to: expected it only of " +
			"move",
		`{"action":"move","queue":"mail","state":"scheduled","to":"mail"}`:                "already",
		`{"action":"reschedule","queue":"mail","state":"scheduled"}`:                      "when?",
		`{"action":"reschedule","queue":"mail","state":"scheduled","when":"99999-01-01"}`: "expected",
	} {
		b.isProblem(start(body), 400, body, says)
	}
	b.isProblem(start(`{"action":"run","queue":"none","state":"scheduled"}`), 404, "none")
	a := start(`{"action":"archive","queue":"mail","state":"scheduled","filter":{"text":"\"1\""}}`)
	if a.Status != 202 || !strings.HasPrefix(a.Header.Get("Location"), "jobs/") {
		t.Fatalf("found %d at %q: %s", a.Status, a.Header.Get("Location"), a.Body)
	}
	var v map[string]any
	b.Until("the job has ended", func() bool {
		v = b.read(a.Header.Get("Location"))
		return at(v, "job", "phase") == "done"
	})
	b.same(v, "5", "job", "report", "done")
	b.same(v, "10", "job", "report", "scanned")
	b.same(v, `"operator"`, "job", "by")
	b.same(v, `"text \"1\""`, "job", "filter")
	b.same(b.read("jobs"), `"done"`, "jobs", 0, "phase")
	b.problem(web.Operator, 409, http.MethodDelete, a.Header.Get("Location"), "", "has ended already")
	b.problem(web.Operator, 404, http.MethodDelete, "jobs/none", "", "no such job")
}

// TestAPICancelsJobs ends a job early.
func TestAPICancelsJobs(t *testing.T) {
	t.Parallel()
	var holding chan struct{}
	var free func()
	b := newBench(t, func(cfg *web.Config) { holding, free = hold(cfg) })
	t.Cleanup(free) // before the dashboard waits for its jobs
	b.schedule(3000)
	a := b.api(web.Operator, http.MethodPost, "jobs", `{"action":"delete","queue":"mail","state":"scheduled"}`)
	if a.Status != 202 {
		t.Fatalf("found %d: %s", a.Status, a.Body)
	}
	redistest.Await(b.Bench, "a page of tasks", holding)
	job := a.Header.Get("Location")
	b.same(b.read(job), `"running"`, "job", "phase")
	b.problem(web.Viewer, 403, http.MethodDelete, job, "")
	b.same(b.document(web.Operator, 202, http.MethodDelete, job, ""), `"stopping"`, "job", "phase")
	free()
	b.Until("the job has ended", func() bool { return at(b.read(job), "job", "phase") == "canceled" })
	b.same(b.read(job), `"operator"`, "job", "stop")
}
