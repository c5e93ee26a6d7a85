package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web"
)

// api sends a request to the API as the user of a role, with a body of JSON if it is not empty.
func (b *bench) api(r web.Role, method, address, body string) answer {
	b.T.Helper()
	return b.apiWith(method, address, body, func(req *http.Request) {
		if r > 0 {
			req.Header.Set("Authorization", "Bearer "+secret(r))
		}
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
	})
}

func (b *bench) apiWith(method, address, body string, change func(*http.Request)) answer {
	b.T.Helper()
	req := httptest.NewRequest(method, "/api/v1/"+address, strings.NewReader(body))
	change(req)
	w := httptest.NewRecorder()
	b.h.ServeHTTP(w, req)
	text, err := io.ReadAll(w.Result().Body)
	b.Must(err)
	return answer{w.Code, w.Header(), string(text)}
}

// document sends a request to the API and returns the document that it answers.
func (b *bench) document(r web.Role, status int, method, address, body string) map[string]any {
	b.T.Helper()
	a := b.api(r, method, address, body)
	if a.Status != status || a.Header.Get("Content-Type") != "application/json" {
		b.T.Fatalf("%s %s %s answers %d of %s, expected %d:\n%s", method, address, body, a.Status,
			a.Header.Get("Content-Type"), status, a.Body)
	}
	var v map[string]any
	b.Must(json.Unmarshal([]byte(a.Body), &v))
	return v
}

// read returns a document as the viewer gets it.
func (b *bench) read(address string) map[string]any {
	b.T.Helper()
	return b.document(web.Viewer, 200, http.MethodGet, address, "")
}

// problem fails the test unless the API answers with a problem of a status that says all of some texts.
func (b *bench) problem(r web.Role, status int, method, address, body string, says ...string) {
	b.T.Helper()
	b.isProblem(b.api(r, method, address, body), status, method+" "+address+" "+body, says...)
}

func (b *bench) isProblem(a answer, status int, of string, says ...string) {
	b.T.Helper()
	var v struct {
		Title, Detail string
		Status        int
	}
	if err := json.Unmarshal([]byte(a.Body), &v); err != nil || a.Status != status || v.Status != status ||
		v.Title == "" || a.Header.Get("Content-Type") != "application/problem+json" {
		b.T.Errorf("%.300s answers %d of %s, expected a problem %d:\n%s", of, a.Status, a.Header.Get("Content-Type"),
			status, a.Body)
		return
	}
	for _, text := range says {
		if !strings.Contains(v.Detail, text) {
			b.T.Errorf("%.300s: the problem is %q, expected %q in it", of, v.Detail, text)
		}
	}
}

// at returns a value in a document by its path: fields, and numbers of elements.
func at(v any, path ...any) any {
	for _, key := range path {
		switch key := key.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[key]
		case int:
			list, _ := v.([]any)
			if key >= len(list) {
				return nil
			}
			v = list[key]
		}
	}
	return v
}

// same fails the test unless a value in a document is written like another.
func (b *bench) same(v any, want string, path ...any) {
	b.T.Helper()
	text, err := json.Marshal(at(v, path...))
	b.Must(err)
	if string(text) != want {
		all, _ := json.Marshal(v)
		b.T.Errorf("%v is %s, expected %s, in %s", path, text, want, all)
	}
}

var errSecret = errors.New("a secret error")

func failSecretly(context.Context, string) error { return errSecret }

func sumOf(_ context.Context, numbers ...int64) (int64, error) {
	sum := int64(0)
	for _, n := range numbers {
		sum += n
	}
	return sum, nil
}

func combine(context.Context, []string) error { return nil }

// full makes a queue with tasks in all states, a worker, a group, an entry and an audit record.
func (b *bench) full() *delayed.Worker {
	b.T.Helper()
	w, _ := b.work(delayed.WorkerConfig{}, failSecretly, sumOf)
	enqueue := func(q *delayed.Queue, fn any, args ...any) {
		b.T.Helper()
		_, err := q.Delay(fn, args...)
		b.Must(err)
	}
	enqueue(b.q.With(delayed.TaskID("dead"), delayed.MaxRetry(0), delayed.Header("tenant", "secret header")),
		failSecretly, "secret argument")
	enqueue(b.q.With(delayed.TaskID("again")), failSecretly, "secret argument")
	enqueue(b.q.With(delayed.TaskID("sum"), delayed.Retention(time.Hour)), sumOf, int64(4711), int64(3))
	enqueue(b.q.With(delayed.TaskID("strange")), combine, []string{"secret argument"})
	enqueue(b.q.With(delayed.TaskID("later"), delayed.In(time.Hour)), failSecretly, "secret argument")
	enqueue(b.q.With(delayed.Group("g")), sumOf, int64(1))
	b.Must(b.q.Periodic().Set(bg, delayed.Entry{
		Name: "digest", Spec: "@every 1h", Task: delayed.Call(failSecretly, "secret argument"),
	}))
	b.Until("the tasks have come to rest", func() bool {
		q, err := b.ins.Queue(bg, b.q.Name())
		b.Must(err)
		return q.Archived == 1 && q.Retry == 1 && q.Completed == 1 && q.Parked == 1 && q.Pending+q.Active == 0
	})
	_, err := b.ins.DoAll(bg, b.q.Name(), inspect.RunNow(), inspect.Query{
		State: state.Archived, Filter: inspect.Filter{Text: "secret filter", Error: "secret filter"},
	}, nil)
	b.Must(err)
	return w
}

// TestAPIReads reads every document of a queue that holds everything.
func TestAPIReads(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.full()
	b.same(b.read("me"), `{"arguments_hidden":false,"name":"viewer","read_only":false,"role":"viewer"}`)
	b.same(b.read("queues"), `"mail"`, "queues", 0, "name")
	q := b.read("queues/mail")
	b.same(q, "1", "queue", "archived")
	b.same(q, "1", "queue", "parked")
	if n, _ := at(q, "queue", "memory_bytes").(float64); n < 100 {
		t.Errorf("the memory is %v", n)
	}
	days := b.read("queues/mail/history?days=3")
	if list, _ := at(days, "days").([]any); len(list) != 3 {
		t.Errorf("the history is %v", days)
	}
	b.same(b.read("queues/mail/depths?per=second&last=1h"), `"second"`, "per")
	b.same(b.read("stats?queue=mail"), "1", "workers")
	b.same(b.read("metrics?per=day"), `"day"`, "per")
	b.same(b.read("metrics?function=sumOf&per=minute&last=2h"), `"minute"`, "per")
	b.same(b.read("backlog?target=30s&min=2"), "2", "wanted_workers")
	b.same(b.read("backlog?queue=mail&target=30s&min=2&max=3"), "30", "target_seconds")

	all := b.read("tasks")
	if lists, _ := at(all, "lists").([]any); len(lists) != len(inspect.States) {
		t.Errorf("there are %d lists, expected those of all states", len(lists))
	}
	for query, want := range map[string]string{
		"state=archived":                            `"dead"`,
		"state=archived&text=secret+argument":       `"dead"`,
		"state=archived&header=tenant":              `"dead"`,
		"state=retry&error=SECRET":                  `"again"`,
		"state=retry&arg=0%3Dsecret+argument":       `"again"`,
		"state=scheduled&function=failSecretly":     `"later"`,
		"state=scheduled&prefix=lat&younger=1h":     `"later"`,
		"state=scheduled&older=1h":                  "null",
		"state=retry&min=2&max=2&newest_first=true": `"again"`,
		"state=completed&group=x":                   "null",
		"state=parked&worker=" + w.ID():             `"strange"`,
	} {
		b.same(b.read("tasks?queue=mail&limit=1&scan=100&"+query), want, "lists", 0, "tasks", 0, "id")
	}
	b.same(b.read("tasks/sum"), "[4711,3]", "tasks", 0, "args", 0)
	b.same(b.read("tasks/sum"), "4714", "tasks", 0, "result")
	b.same(b.read("tasks/dead?queue=mail"), `"a secret error"`, "tasks", 0, "error")

	functions := b.read("functions?queue=mail")
	b.same(functions, `"mail"`, "functions", 0, "queue")
	b.same(b.read("workers"), fmt.Sprintf("%q", w.ID()), "workers", 0, "id")
	b.same(b.read("workers/"+w.ID()), "true", "workers", 0, "alive")
	b.same(b.read("entries"), `"digest"`, "entries", 0, "name")
	b.same(b.read("entries?queue=mail"), `"@every 1h0m0s"`, "entries", 0, "spec")
	b.same(b.read("queues/mail/entries/digest/history"), `[]`, "ticks")
	b.same(b.read("groups"), `"g"`, "groups", 0, "key")
	b.same(b.read("audit?limit=1"), `"test"`, "records", 0, "actor")
	b.same(b.read("audit?skip=1000"), `[]`, "records")
	b.same(b.read("jobs"), `[]`, "jobs")
	b.same(b.read("openapi.json"), `"3.1.0"`, "openapi")

	head := b.api(web.Viewer, http.MethodHead, "queues", "")
	if head.Status != 200 || head.Body != "" || head.Header.Get("Content-Length") == "" {
		t.Errorf("HEAD answers %d %q", head.Status, head.Body)
	}
}

// TestAPICursors reads a list page by page.
func TestAPICursors(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 25 {
		_, err := b.q.With(delayed.TaskID(fmt.Sprintf("t-%02d", i))).Delay(combine, []string{})
		b.Must(err)
	}
	for _, order := range []string{"", "&newest_first=true"} {
		var ids []string
		cursor := ""
		for pages := 0; pages == 0 || cursor != ""; pages++ {
			if pages > 10 {
				t.Fatal("the pages do not end")
			}
			v := b.read("tasks?queue=mail&state=pending&limit=10" + order + "&cursor=" + url.QueryEscape(cursor))
			tasks, _ := at(v, "lists", 0, "tasks").([]any)
			for i := range tasks {
				ids = append(ids, at(tasks[i], "id").(string)) //nolint:errcheck // else the test panics
			}
			cursor, _ = at(v, "lists", 0, "cursor").(string)
		}
		if len(ids) != 25 || ids[0] == ids[24] {
			t.Errorf("found %v", ids)
		}
	}
}

// TestAPIHidesArguments reads every document as a viewer who may not see arguments.
func TestAPIHidesArguments(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *web.Config) { c.HideArguments = true })
	w := b.full()
	_, err := b.h.StartJob(web.User{Name: "operator", Role: web.Operator}, queueName, state.Archived,
		inspect.Filter{Text: "secret filter"}, inspect.RunNow())
	b.Must(err)
	names := strings.NewReplacer("{queue}", queueName, "{id}", "dead", "{worker}", w.ID(), "{entry}", "digest",
		"{job}", "none")
	reads := 0
	for _, e := range web.Endpoints() {
		if e.Method != http.MethodGet || e.Path == "events" {
			continue
		}
		reads++
		a := b.api(web.Viewer, http.MethodGet, names.Replace(e.Path), "")
		for _, hidden := range []string{"secret", "4711", "4714"} {
			if strings.Contains(a.Body, hidden) {
				t.Errorf("%s tells the viewer %q: %s", e.Path, hidden, a.Body)
			}
		}
	}
	if reads < 15 {
		t.Errorf("there are only %d documents to read", reads)
	}
	b.has(b.api(web.Operator, http.MethodGet, "tasks/dead", "").Body, "secret argument", "secret header", "a secret error")
	b.has(b.api(web.Operator, http.MethodGet, "audit", "").Body, "secret filter")
	for _, query := range []string{"text=x", "arg=0", "error=x", "header=tenant"} {
		b.problem(web.Viewer, 403, http.MethodGet, "tasks?"+query, "", "cannot filter by them")
		b.document(web.Operator, 200, http.MethodGet, "tasks?"+query, "")
	}
	b.same(b.read("me"), "true", "arguments_hidden")
}

// TestAPIRoles tries every endpoint in every role. Nobody but those who may do it changes anything.
func TestAPIRoles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	readOnly := newBench(t, func(c *web.Config) { c.ReadOnly = true })
	w := b.full()
	names := strings.NewReplacer("{queue}", queueName, "{id}", "later", "{worker}", w.ID(), "{entry}", "digest",
		"{job}", "none")
	before := b.state()
	var deeds int
	for _, e := range web.Endpoints() {
		address := names.Replace(e.Path)
		b.problem(0, 401, e.Method, address, "", "Authorization: Bearer TOKEN")
		if e.Path == "events" {
			continue // TestAPIEvents follows them
		}
		for r := web.Viewer; r < e.Role; r++ {
			b.problem(r, 403, e.Method, address, "", "your role, "+r.String()+", does not allow this")
		}
		if e.Method == http.MethodGet {
			if a := b.api(web.Viewer, e.Method, address, ""); a.Status != 200 && e.Path != "jobs/{job}" {
				t.Errorf("%s answers %d: %s", address, a.Status, a.Body)
			}
			continue
		}
		deeds++
		for r := web.Viewer; r <= web.Admin; r++ {
			readOnly.problem(r, 403, e.Method, address, "")
		}
	}
	if after := b.state(); after != before {
		t.Errorf("something has changed, from\n%s\nto\n%s", before, after)
	}
	if deeds < 20 {
		t.Errorf("there are only %d deeds", deeds)
	}
}

// state returns everything that people could change.
func (b *bench) state() string {
	b.T.Helper()
	var parts []any
	for _, address := range []string{"tasks", "entries", "groups", "audit", "jobs"} {
		parts = append(parts, b.read(address))
	}
	q, err := b.ins.Queue(bg, queueName)
	b.Must(err)
	parts = append(parts, q.Paused, q.Weight, q.Workers)
	text, err := json.Marshal(parts)
	b.Must(err)
	return string(text)
}

// TestAPIDeeds does everything that the API can do.
func TestAPIDeeds(t *testing.T) {
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
	due, err := time.Parse(time.RFC3339, at(b.read("tasks/later"), "tasks", 0, "due").(string)) //nolint:errcheck // a text
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
	b.document(admin, 200, put, "tasks/dead/arguments", `{"args":[1],"unchecked":true}`)

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
		`{}`:                                                                "function: expected the path",
		`{"function":"m:f"}`:                                                "queue: expected the name of one",
		`{"function":"sumOf","args":["x"]}`:                                 "expected a whole number",
		`{"function":"failSecretly","args":[]}`:                             "expected the arguments of",
		`{"function":"sumOf","kwargs":{}}`:                                  "kwargs: expected them only of Python",
		`{"function":"sumOf","options":{"in":"soon"}}`:                      `options.in: expected a duration`,
		`{"function":"sumOf","options":{"in":"-1h"}}`:                       `not negative`,
		`{"function":"sumOf","options":{"at":"tomorrow"}}`:                  `options.at: expected a time`,
		`{"function":"sumOf","options":{"max_retry":-1}}`:                   "0 or more",
		`{"function":"sumOf","options":{"max_retry":99999999999999999999}}`: "field options.max_retry: expected a whole number",
		`{"function":"sumOf","options":{"on_conflict":"win"}}`:              "expected fail, skip or replace",
		`{"function":"sumOf","options":{"unique_key":"k"}}`:                 "expected options.unique too",
		`{"function":"sumOf","options":{"debounce":"1s","in":"1s"}}`:        "Debounce",
		`{"function":"sumOf","options":{"priority":1}}`:                     `unknown field "priority"`,
		`{"function":"sumOf","queue":"` + strings.Repeat("q", 2000) + `"}`:  "queue",
		`{"function":"no path","queue":"mail","unchecked":true,"args":[1]}`: "",
		`{"function":"mod:f","queue":"mail","kwargs":[1]}`:                  "expected a JSON object",
	} {
		b.isProblem(enqueue(body), 400, body, says)
	}
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
	holding, free := make(chan struct{}), make(chan struct{})
	var armed bool
	b := newBench(t, func(c *web.Config) {
		c.Redact = func(*inspect.Contents) {
			if armed {
				armed = false
				close(holding)
				<-free
			}
		}
	})
	for i := range 10 {
		_, err := b.q.With(delayed.TaskID(fmt.Sprint(i)), delayed.In(time.Hour)).Delay(combine, []string{fmt.Sprint(i % 2)})
		b.Must(err)
	}
	start := func(body string) answer { return b.api(web.Operator, http.MethodPost, "jobs", body) }
	for body, says := range map[string]string{
		`{"action":"explode","queue":"mail","state":"scheduled"}`:                         "action: expected one of run",
		`{"action":"run","queue":"mail","state":"pending"}`:                               "state: expected one",
		`{"action":"run","queue":"mail"}`:                                                 "state: expected one",
		`{"action":"run","queue":"","state":"scheduled"}`:                                 "queue",
		`{"action":"run","queue":"mail","state":"scheduled","filter":{"functon":"x"}}`:    `unknown field "functon"`,
		`{"action":"run","queue":"mail","state":"scheduled","filter":{"older":"long"}}`:   "Older than",
		`{"action":"run","queue":"mail","state":"scheduled","to":"slow"}`:                 "to: expected it only of move",
		`{"action":"move","queue":"mail","state":"scheduled","to":"mail"}`:                "already",
		`{"action":"reschedule","queue":"mail","state":"scheduled"}`:                      "when?",
		`{"action":"reschedule","queue":"mail","state":"scheduled","when":"99999-01-01"}`: "expected",
	} {
		b.isProblem(start(body), 400, body, says)
	}
	b.isProblem(start(`{"action":"run","queue":"none","state":"scheduled"}`), 404, "none")
	a := start(`{"action":"archive","queue":"mail","state":"scheduled","filter":{"text":"[\"1\"]"}}`)
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
	b.same(v, `"text [\"1\"]"`, "job", "filter")
	b.same(b.read("jobs"), `"done"`, "jobs", 0, "phase")
	b.problem(web.Operator, 409, http.MethodDelete, a.Header.Get("Location"), "", "has ended already")
	b.problem(web.Operator, 404, http.MethodDelete, "jobs/none", "", "no such job")

	armed = true
	done := make(chan answer, 1)
	go func() { done <- start(`{"action":"run","queue":"mail","state":"archived"}`) }()
	<-holding // a page of the list is read, or its first task
	close(free)
	a = redistest.Await(b.Bench, "the start", done)
	if a.Status != 202 {
		t.Fatalf("found %d: %s", a.Status, a.Body)
	}
	// It may have ended before it is told to; then that is a conflict.
	if a := b.api(web.Operator, http.MethodDelete, a.Header.Get("Location"), ""); a.Status != 202 && a.Status != 409 {
		t.Errorf("canceling answers %d: %s", a.Status, a.Body)
	}
	b.Until("the job has ended", func() bool { return at(b.read(a.Header.Get("Location")), "job", "ended") != nil })
}

// TestAPIProblems sends requests that are wrong.
func TestAPIProblems(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := b.q.Delay(combine, []string{})
	b.Must(err)
	const get, post, put = http.MethodGet, http.MethodPost, http.MethodPut
	huge := strings.Repeat("9", 400)
	for _, c := range []struct {
		status          int
		method, address string
		body, says      string
	}{
		{404, get, "", "", "nothing at this address"},
		{404, get, "nothing", "", "openapi.json describes"},
		{404, get, "queues/", "", "nothing at this address"},
		{405, post, "queues", "", "expected GET, found POST"},
		{405, "BREW", "tasks", "", "expected GET or POST, found BREW"},
		{405, http.MethodOptions, "queues/mail", "", "expected DELETE or GET"},
		{404, get, "queues/none", "", "nobody has enqueued"},
		{400, get, "queues/" + strings.Repeat("q", 3000), "", "queue"},
		{400, get, "tasks?queue=%ff%fe", "", "queue"},
		{400, get, "tasks?qeue=mail", "", `parameter "qeue": expected one of queue, state`},
		{400, get, "queues?limit=1", "", "expected no parameters"},
		{400, get, "tasks?limit=1&limit=2", "", "parameter limit: expected one, found 2"},
		{400, get, "tasks?" + strings.Repeat("queue=mail&", 200), "", "expected at most 100"},
		{400, get, "tasks?limit=0", "", "expected a number from 1 to 1000"},
		{400, get, "tasks?limit=" + huge, "", "expected a number from 1 to 1000"},
		{400, get, "tasks?scan=-5", "", "expected a number from 1"},
		{400, get, "tasks?newest_first=yes", "", "expected true or false"},
		{400, get, "tasks?state=dead", "", "expected pending, active"},
		{400, get, "tasks?min=" + huge, "", "expected a number from 1"},
		{400, get, "tasks?older=" + huge + "d", "", "Older than"},
		{400, get, "tasks?cursor=x", "", "it belongs to one list"},
		{400, get, "tasks?queue=mail&state=retry&cursor=%00%ff", "", "cursor"},
		{400, get, "tasks?%zz", "", "cannot be read"},
		{400, get, "metrics?per=year", "", "expected second, minute, day"},
		{400, get, "metrics?per=minute&last=1s", "", "parameter last"},
		{400, get, "metrics?last=" + huge + "h", "", "parameter last"},
		{400, get, "backlog?target=0s", "", "above 0"},
		{400, get, "backlog?min=3&max=2", "", "at least min"},
		{400, get, "audit?skip=-1", "", "expected a number from 0"},
		{400, get, "events?kind=birthday", "", "parameter kind: expected one of"},
		{404, get, "events?queue=none", "", "none"},
		{404, get, "tasks/none", "", "no queue holds"},
		{404, get, "workers/none", "", "no worker"},
		{404, get, "queues/mail/entries/none/history", "", ""},
		{404, get, "jobs/none", "", "no such job"},
		{400, post, "queues/mail/pause", `{"for":"1h"}`, "expected no body"},
		{400, put, "queues/mail/weight", `{"weight":1001}`, "expected a number from 0 to 1000"},
		{400, put, "queues/mail/weight", `{"weight":` + huge + `}`, "field weight: expected a whole number"},
		{400, put, "queues/mail/weight", `{"weight":"1"}`, "field weight: expected a whole number, found string"},
		{400, put, "queues/mail/weight", `{"weight":1,"\u202e":2}`, `unknown field`},
		{400, put, "queues/mail/weight", `{"weight":1} {}`, "more than one JSON value"},
		{400, put, "queues/mail/weight", `[`, "expected a JSON object with the fields weight"},
		{400, put, "queues/mail/weight", strings.Repeat("[", 20_000), "expected a JSON object"},
		{404, put, "queues/none/weight", `{"weight":1}`, "nobody has enqueued"},
		{400, post, "actions", `{"action":"run","queue":"mail","ids":[]}`, "expected 1 to 1000 ids"},
		{400, post, "actions", `{"action":"run","queue":"mail","ids":["a",""]}`, "expected 1 to 1000 ids"},
		{400, post, "actions", `{"action":"run","queue":"","ids":["a"]}`, "queue"},
		{404, post, "actions", `{"action":"run","queue":"none","ids":["a"]}`, "nobody has enqueued"},
		{400, post, "actions", `{"action":"run","queue":"mail","ids":["a"],"when":"1h"}`, "only of reschedule"},
		{400, put, "tasks/a/arguments", `{}`, "args: expected an array"},
		{404, put, "tasks/a/arguments", `{"args":[]}`, "no queue holds"},
		{413, post, "tasks", `{"function":"` + strings.Repeat("x", 9<<20) + `"}`, "expected a body of at most"},
	} {
		b.problem(web.Admin, c.status, c.method, c.address, c.body, c.says)
	}
	b.isProblem(b.apiWith(put, "queues/mail/weight", `{"weight":1}`, func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+secret(web.Admin))
		r.Header.Set("Content-Type", "text/plain")
	}), 415, "text", `expected the header Content-Type to be application/json, found "text/plain"`)
	a := b.api(web.Admin, post, "queues", "")
	if a.Header.Get("Allow") != "GET" {
		t.Errorf("405 allows %q", a.Header.Get("Allow"))
	}
	if a := b.api(0, get, "queues", ""); a.Header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("401 says %v", a.Header)
	}
	b.isProblem(b.apiWith(get, "queues", "", func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer wrong")
	}), 401, "a wrong token")
}

// TestAPIInTwoQueues acts on tasks of one id in two queues.
func TestAPIInTwoQueues(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, name := range []string{"mail", "news"} {
		_, err := delayed.NewQueue(name, b.rdb).With(delayed.TaskID("twin"), delayed.In(time.Hour)).Delay(combine, []string{})
		b.Must(err)
	}
	b.problem(web.Operator, 409, http.MethodPost, "tasks/twin/run", "", `"mail", "news"`, "expected parameter queue")
	b.document(web.Operator, 200, http.MethodPost, "tasks/twin/run?queue=news", "")
	if tasks, _ := b.read("tasks/twin")["tasks"].([]any); len(tasks) != 2 {
		t.Errorf("found %v", tasks)
	}
}

// TestAPIRate bounds how often a user asks, each for themselves.
func TestAPIRate(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *web.Config) { c.APIRate = 0.01 })
	b.read("me")
	a := b.api(web.Viewer, http.MethodGet, "me", "")
	b.isProblem(a, 429, "the second", "expected at most 0.01 requests a second")
	if s := a.Header.Get("Retry-After"); s != "100" && s != "101" {
		t.Errorf("try again after %q seconds", s)
	}
	b.document(web.Operator, 200, http.MethodGet, "me", "")
}

// TestAPIInBrowsers needs the secret of a browser for what changes something, of users without a token.
func TestAPIInBrowsers(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *web.Config) {
		c.Authorize = func(r *http.Request) (web.User, error) {
			if r.Header.Get("X-User") == "" {
				return web.User{}, errors.New("a stranger")
			}
			return web.User{Name: "ann", Role: web.Admin}, nil
		}
	})
	_, err := b.q.Delay(combine, []string{})
	b.Must(err)
	try := func(cookie, header, site string) answer {
		return b.apiWith(http.MethodPost, "queues/mail/pause", "", func(r *http.Request) {
			r.Header.Set("X-User", "ann")
			r.Header.Set("Sec-Fetch-Site", site)
			if header != "" {
				r.Header.Set("X-Delayed-CSRF", header)
			}
			r.AddCookie(&http.Cookie{Name: "delayed_csrf", Value: cookie})
		})
	}
	value := strings.Repeat("s", 20)
	b.isProblem(try(value, "", "same-origin"), 403, "no header", "X-Delayed-CSRF")
	b.isProblem(try(value, value+"x", "same-origin"), 403, "a wrong header")
	b.isProblem(try("short", "short", "same-origin"), 403, "a short secret")
	b.isProblem(try(value, value, "cross-site"), 403, "another site")
	if a := try(value, value, "same-origin"); a.Status != 200 {
		t.Errorf("the browser is refused: %d %s", a.Status, a.Body)
	}
	b.isProblem(b.apiWith(http.MethodGet, "queues", "", func(*http.Request) {}), 403, "a stranger")
}

// TestAPIIsFaithful reads ids and errors with all kinds of characters as they are.
func TestAPIIsFaithful(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, id := range []string{"a/b", "..", "a?b#c", "%2F", "\u202e日本語", "a b+c", `"<script>`} {
		_, err := b.q.With(delayed.TaskID(id), delayed.In(time.Hour)).Delay(combine, []string{"\u202e<b>"})
		b.Must(err)
		a := b.api(web.Viewer, http.MethodGet, "tasks/"+pathEscape(id), "")
		var v map[string]any
		if err := json.Unmarshal([]byte(a.Body), &v); err != nil || at(v, "tasks", 0, "id") != id {
			t.Errorf("%q answers %d: %s", id, a.Status, a.Body)
		}
		if bytes.ContainsRune([]byte(a.Body), '\u202e') {
			t.Errorf("%q: the answer has what does not print", id)
		}
		b.document(web.Operator, 200, http.MethodDelete, "tasks/"+pathEscape(id), "")
	}
}

// pathEscape escapes a part of a path, also those that mean folders.
func pathEscape(s string) string {
	if s == "." || s == ".." {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}
