package web_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/web"
)

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
		_, err := delayed.NewQueue(name, b.rdb).With(delayed.TaskID("twin"), delayed.In(time.Hour)).Delay(combine,
			[]string{})
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
