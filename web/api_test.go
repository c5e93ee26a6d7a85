package web_test

import (
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
	b.same(b.read("tasks/sum"), "[4711,3]", "tasks", 0, "args")
	b.same(b.read("tasks/sum"), "4714", "tasks", 0, "result")
	b.same(b.read("tasks/dead?queue=mail"), `"a secret error"`, "tasks", 0, "error")

	functions := b.read("functions?queue=mail")
	b.same(functions, `"mail"`, "functions", 0, "queue")
	b.same(b.read("workers"), fmt.Sprintf("%q", w.ID()), "workers", 0, "id")
	b.same(b.read("workers/"+w.ID()), "true", "workers", 0, "alive")
	b.same(b.read("entries"), `"digest"`, "entries", 0, "name")
	b.same(b.read("entries?queue=mail"), `"@every 1h"`, "entries", 0, "spec")
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
	for _, lists := range []string{"", "queue=mail&", "queue=mail&state=pending&state=retry&"} {
		b.problem(web.Viewer, 400, http.MethodGet, "tasks?"+lists+"cursor=x", "", "expected one queue and one state")
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
		if e.Method != http.MethodGet || e.Path == "events" || e.Path == "openapi.json" {
			continue
		}
		reads++
		a := b.api(web.Viewer, http.MethodGet, names.Replace(e.Path), "")
		for _, hidden := range []string{"secret", "4711", "4714"} {
			if strings.Contains(a.Body, hidden) {
				t.Errorf("%s shows the viewer %q: %s", e.Path, hidden, a.Body)
			}
		}
	}
	if reads < 15 {
		t.Errorf("there are only %d documents to read", reads)
	}
	b.has(b.api(web.Operator, http.MethodGet, "tasks/dead", "").Body, "secret argument", "secret header",
		"a secret error")
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
	var actions int
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
		actions++
		for r := web.Viewer; r <= web.Admin; r++ {
			readOnly.problem(r, 403, e.Method, address, "")
		}
	}
	if after := b.state(); after != before {
		t.Errorf("something has changed, from\n%s\nto\n%s", before, after)
	}
	if actions < 20 {
		t.Errorf("there are only %d actions", actions)
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
