package web_test

import (
	"context"
	"errors"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web"
)

// Person is an argument with fields.
type Person struct {
	Name string
	Home *Home
	Tags map[string][]int
}

// Home is a field with fields.
type Home struct {
	Street string
	Since  time.Time
}

func move(_ context.Context, p Person, wait time.Duration, text string) error {
	if p.Name == "panics" {
		panic("the van broke down")
	}
	return errors.New("no van")
}

// taskAt returns the address of a task's page.
func taskAt(id string) string {
	return "task?" + url.Values{"queue": {queueName}, "id": {id}}.Encode()
}

func TestTaskUnfolded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	home := &Home{"Main Street", time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)}
	p := Person{"panics", home, map[string][]int{"a": {1, 2}}}
	long := "first line\n" + strings.Repeat("long ", 500) + "the end"
	q := b.q.With(delayed.TaskID("m"), delayed.Header("tenant", "acme"), delayed.MaxRetry(7),
		delayed.Timeout(time.Minute), delayed.RetryUntil(time.Now().Add(48*time.Hour)))
	_, err := q.Delay(move, p, 90*time.Second, long)
	b.Must(err)
	w, _ := b.work(delayed.WorkerConfig{}, move)
	b.count(state.Retry, 1)
	page := b.get(web.Operator, taskAt("m"))
	b.has(page, "web_test.move", `<span class="state retry">`,
		`<span class="node-key">0</span> <span class="type">web_test.Person</span> <span class="soft">3 fields</span>`,
		`<span class="node-key">Street</span> <span class="type">string</span> <code>&#34;Main Street&#34;</code>`,
		`<span class="type">time</span> <code>2020-01-02T03:04:05Z</code>`,
		`<span class="type">map[string][]int64</span> <span class="soft">1 entry</span>`,
		`<span class="type">time.Duration</span> <code>90000000000 (1 min 30 s)</code>`, "show all", "the end</pre>",
		"<code>tenant</code>", "<code>acme</code>", "Retries, at most", "1 min", "Not tried again from then on",
		"the van broke down", "<summary>stack</summary>", "web_test.move(", "Attempt 1 failed", "Attempt 2 is due",
		`href="worker?id=`+w.ID(), `href="function?path=`, "Its last attempt failed")
	order := []string{"<b>Enqueued</b>", "<b>Attempt 1 failed</b>", "<b>Attempt 2 is due</b>", "<b>Not tried again"}
	for i, last := 0, 0; i < len(order); i++ {
		at := strings.Index(page, order[i])
		if at < last {
			t.Errorf("%s is at the wrong place of the timeline", order[i])
		}
		last = at
	}
	b.hasNot(page, `href="edit`)
	b.has(b.get(web.Admin, taskAt("m")), `href="edit?id=m&amp;queue=mail"`)
	b.hasNot(b.get(web.Viewer, taskAt("m")), `<form method="post" action="task"`)
}

// TestTimelineOfDifferentClocks has a task that was enqueued later than claimed, by the clocks of the two machines.
func TestTimelineOfDifferentClocks(t *testing.T) {
	t.Parallel()
	now := time.Now()
	task := &inspect.Task{
		State: state.Active, EnqueuedAt: now, Claimed: now.Add(-2 * time.Second), Started: now.Add(-time.Second),
		Attempt: 1,
	}
	want := []string{"Enqueued", "Claimed", "Attempt 1 started"}
	if got := web.Timeline(task, now); !slices.Equal(got, want) {
		t.Errorf("found %q, expected %q", got, want)
	}
}

// TestTaskStates looks at a task in each state.
func TestTaskStates(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	running, release := make(chan struct{}), make(chan struct{})
	encode := delayed.Func(func(ctx context.Context) error {
		err := delayed.Progress(ctx, 40, 100, "frame 1<2")
		close(running)
		<-release
		return err
	}, delayed.Name("encode"))
	count := delayed.Func(func() map[string]int { return map[string]int{"rows": 12} }, delayed.Name("count"))
	add := func(id string, fn any, opts []delayed.Option, args ...any) {
		t.Helper()
		_, err := b.q.With(append(opts, delayed.TaskID(id))...).Delay(fn, args...)
		b.Must(err)
	}
	add("completed", count, []delayed.Option{delayed.KeepResult(time.Hour)})
	add("parked", greet, nil, 1, "en")
	add("archived", move, []delayed.Option{delayed.MaxRetry(0)}, Person{}, time.Second, "")
	b.Do("RPUSH", b.Name, "no message")
	b.Do("RPUSH", b.Name+"_noti", 1)
	add("scheduled", greet, []delayed.Option{delayed.In(time.Hour), delayed.TTL(2 * time.Hour)}, 1, "en")
	_, stop := b.work(delayed.WorkerConfig{}, encode, count, move)
	b.count(state.Completed, 1)
	b.count(state.Parked, 1)
	b.count(state.Archived, 2)
	add("active", encode, nil)
	<-running
	t.Cleanup(stop)
	t.Cleanup(func() { close(release) })
	b.Must(b.q.Pause(bg))
	b.python("pending", []any{1, nil, 2.5, []byte{0, 1}}, map[string]any{"to": "ann", "copy": true})
	for id, texts := range map[string][]string{
		"completed": {
			"<h2>Result</h2>", `>rows</span> <span class="type">int</span> <code>12</code>`, "Completed",
			"Kept until then", "its arguments are gone", `state=completed`,
		},
		"parked":    {"no worker knows its function", "Archived, unless a worker comes"},
		"archived":  {"no van", "no retries are left", "Deleted, or earlier if the archive is full", `value="retry"`},
		"scheduled": {"<b>Due</b>", "Too late to start", `value="reschedule"`, `value="run"`},
		"active": {
			"40 of 100", "frame 1&lt;2", "Claimed", `<progress class="wide" max="100" value="40"`, `value="cancel"`,
		},
		"pending": {
			"app.mail:send(1, nil, 2.5,", "Python", "By name", `>copy</span> <span class="type">bool</span>`,
			`>1</span> <span class="type"></span> <code>nil</code>`, `2 B, &#34;\x00\x01&#34;`,
		},
	} {
		page := b.get(web.Operator, taskAt(id))
		b.has(page, append(texts, `<span class="state `+id)...)
		if id == "active" {
			b.hasNot(page, `value="delete"`)
		}
	}
	// The message that is none has an id that the worker has given it.
	tasks, err := b.ins.Tasks(bg, queueName, inspect.Query{
		State: state.Archived, Filter: inspect.Filter{Reason: "undecodable"},
	})
	b.Must(err)
	b.has(b.get(web.Admin, taskAt(tasks.Tasks[0].ID)), "Unreadable task", "its bytes are not a message",
		"the message cannot be read")
	b.hasNot(b.get(web.Admin, taskAt(tasks.Tasks[0].ID)), "edit?")
}

// TestTaskRelations looks at what a task is connected with.
func TestTaskRelations(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	m := wire.Message{Kind: wire.GoExtended, Path: "example.com/app/mail.Nightly", Meta: wire.Meta{
		ID: "tick", EnqueuedAt: time.Now().UnixMilli(), Deaths: 2, Extra: &wire.Extra{Lock: "p:night ly", Group: "g 1"},
	}}
	b.python("other", nil, nil)
	b.Do("RPUSH", b.Name, m.Append(nil))
	page := b.get(web.Operator, taskAt("tick"))
	b.has(page, `href="entry?name=night&#43;ly&amp;queue=mail"`, `href="groups?queue=mail"`, "g 1", `href="deaths"`,
		"2 workers")
	_, err := b.q.With(delayed.Unique(time.Hour), delayed.TaskID("u"), delayed.In(time.Hour)).Delay(greet, 1, "en")
	b.Must(err)
	b.has(b.get(web.Operator, taskAt("u")), "unique by its arguments")
}

func TestTaskActions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	where := func(id string) string {
		found, err := b.ins.Find(bg, id)
		if err != nil {
			return "gone"
		}
		return found[0].Queue + " " + found[0].State.String()
	}
	for _, verb := range []string{"run", "retry", "archive", "reschedule", "move", "cancel", "delete"} {
		b.refused(web.Viewer, taskAt("x"), verb, "queue", queueName, "id", "x")
	}
	for _, c := range []struct{ verb, field, value, want, text string }{
		{"run", "", "", "mail pending", "Made pending 1 task."},
		{"archive", "", "", "mail archived", "Archived 1 task."},
		{"retry", "", "", "mail pending", "Made pending 1 task."},
		{"reschedule", "when", "90m", "mail scheduled", "Rescheduled 1 task."},
		{"move", "to", "other", "other scheduled", "Moved 1 task."},
		{"cancel", "", "", "gone", "Canceled 1 task."},
		{"delete", "", "", "gone", "Deleted 1 task."},
	} {
		b.python(c.verb, nil, nil, delayed.In(time.Hour))
		if c.verb == "retry" {
			b.do(web.Operator, taskAt(c.verb), "archive", "queue", queueName, "id", c.verb)
		}
		a := b.post(web.Operator, taskAt(c.verb), c.verb, "queue", queueName, "id", c.verb, "state", "scheduled",
			c.field, c.value)
		page := b.ask(web.Operator, http.MethodGet, a.Header.Get("Location"), nil).Body
		b.has(page, c.text)
		if got := where(c.verb); got != c.want {
			t.Errorf("%s: the task is %s, expected %s", c.verb, got, c.want)
		}
	}
	for _, fields := range [][]string{
		{"queue", queueName},
		{"id", "x"},
		{"queue", queueName, "id", "a", "id", "b"},
		{"queue", queueName, "id", "none"},
	} {
		if a := b.post(web.Operator, taskAt("x"), "run", fields...); a.Status != http.StatusSeeOther ||
			!strings.Contains(a.Header.Get("Location"), "notice=") {
			t.Errorf("%v answers %d", fields, a.Status)
		}
	}
	to := b.post(web.Operator, taskAt("x"), "run", "queue", queueName, "id", "none").Header.Get("Location")
	b.has(b.ask(web.Operator, http.MethodGet, to, nil).Body, `<p class="notice bad"`, "It went wrong with 1 task")
}

func TestTaskGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.python("one", nil, nil)
	for address, want := range map[string]string{
		taskAt("x\u202e"):         `holds no task <code>x\u202e</code>`,
		"task?queue=none&id=x":    "There is no queue <b>none</b>",
		"task?queue=mail":         "Tasks whose messages carry no id",
		"task":                    "Tasks whose messages carry no id",
		"task?id=x":               "There is no queue of that name",
		taskAt("%2F../\x00<b>\n"): `%2F../\x00&lt;b&gt;\n`,
	} {
		a := b.ask(web.Viewer, http.MethodGet, address, nil)
		if a.Status != http.StatusNotFound || !strings.Contains(a.Body, want) {
			t.Errorf("%s answers %d, expected %q:\n%s", address, a.Status, want, main(a.Body))
		}
	}
}

func TestTaskHidden(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(cfg *web.Config) {
		cfg.HideArguments = true
		cfg.Redact = func(c *inspect.Contents) { c.Function = strings.ReplaceAll(c.Function, "hush", "mail") }
	})
	b.python("t", []any{"secret"}, map[string]any{"k": "secret"}, delayed.Header("h", "secret"), delayed.In(time.Hour))
	b.hasNot(b.get(web.Viewer, taskAt("t")), "secret")
	b.has(b.get(web.Viewer, taskAt("t")), "Your role does not see arguments", "app.mail:send(…)")
	b.has(b.get(web.Operator, taskAt("t")), "secret")
	_, err := b.q.With(delayed.TaskID("redacted"), delayed.In(time.Hour)).Enqueue(bg, delayed.NewGoTask("x/hush.Send"))
	b.Must(err)
	for _, r := range []web.Role{web.Viewer, web.Operator} {
		page := b.get(r, taskAt("redacted"))
		b.has(page, "mail.Send(")
		b.hasNot(page, "hush")
	}
}

// The notice after a action is for who did it alone.
func TestNoticesAreForOneUser(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.python("t", nil, nil, delayed.In(time.Hour))
	to := b.post(web.Operator, taskAt("t"), "archive", "queue", queueName, "id", "t").Header.Get("Location")
	b.hasNot(b.get(web.Admin, to), "Archived 1 task")
	b.has(b.get(web.Operator, to), "Archived 1 task")
}

func TestTaskHostile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	bad := "<script>\u202e\x00\"'"
	for _, id := range hostileIDs() {
		b.python(id, []any{bad, map[string]any{bad: bad}}, map[string]any{bad: bad}, delayed.Header(bad, bad+"\n"),
			delayed.In(time.Hour))
		page := b.get(web.Operator, taskAt(id))
		b.hasNot(page, "\u202e", "\x00", "<script>")
		// The form on the page is about this task.
		m := regexp.MustCompile(`name="id" value="([^"]*)"`).FindStringSubmatch(page)
		back := regexp.MustCompile(`name="back" value="([^"]*)"`).FindStringSubmatch(page)
		b.has(b.do(web.Operator, html.UnescapeString(back[1]), "archive", "queue", queueName, "id",
			html.UnescapeString(m[1])), "Archived 1 task.", `<span class="state archived">`)
	}
}

// A value that is too large to be shown is shown in part.
func TestTaskLarge(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	many := make([]any, 300)
	for i := range many {
		many[i] = []any{i, i, i, i, i, i, i, i, i, i, i, i}
	}
	b.python("large", []any{many, strings.Repeat("x", 300_000)}, nil, delayed.In(time.Hour))
	page := b.get(web.Operator, taskAt("large"))
	b.has(page, "300 elements", "more</li>")
	if n := len(page); n > 600_000 {
		t.Errorf("the page has %d bytes", n)
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := delayed.NewQueue("mail-2", b.rdb)
	b.python("one", nil, nil)
	b.python("both", nil, nil, delayed.In(time.Hour))
	_, err := other.With(delayed.TaskID("both")).Enqueue(bg, delayed.NewPyTask("a:b", nil, nil))
	b.Must(err)
	b.work(delayed.WorkerConfig{}, greet, move)
	b.Must(b.q.Pause(bg))
	b.python("late", nil, nil)
	greetPage := "function?path=" + url.QueryEscape("github.com/godelayed/delayed/web_test.greet") + "&queue=mail"
	for query, want := range map[string]string{
		"mail": "queue?name=mail", "late": "task?id=late&queue=mail", "mail-2\n": "queue?name=mail-2",
		"greet":          greetPage,
		"web_test.greet": greetPage,
	} {
		a := b.ask(web.Viewer, http.MethodGet, "search?q="+url.QueryEscape(query), nil)
		if got := a.Header.Get("Location"); a.Status != http.StatusSeeOther || got != want {
			t.Errorf("%q leads to %q (%d), expected %q", query, got, a.Status, want)
		}
	}
	b.has(b.get(web.Viewer, "search?q=both"), "Tasks with this id", "task?id=both&amp;queue=mail-2",
		"task?id=both&amp;queue=mail")
	b.has(b.get(web.Viewer, "search?q=MAI"), "queue?name=mail-2")
	b.has(b.get(web.Viewer, "search?q=web_test"), "web_test.greet(int, string)", "web_test.move(")
	b.has(b.get(web.Viewer, "search?q=nothing"), "Nothing found", "state=archived")
	b.has(b.get(web.Viewer, "search?q="), "What are you looking for?")
	for _, id := range hostileIDs() {
		page := b.get(web.Viewer, "search?q="+url.QueryEscape(id+"?"))
		b.hasNot(page, "\u202e", "\x00", "<script>")
		b.has(page, "Nothing found")
	}
	b.has(b.get(web.Viewer, "search?q="+strings.Repeat("x", 1024)), "Nothing found")
}
