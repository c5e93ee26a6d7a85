package web_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web"
)

func greet(_ context.Context, id int, lang string) error {
	if lang == "xx" {
		return fmt.Errorf("mailbox %d full", id)
	}
	return nil
}

// python enqueues the call of a Python function; its id is given.
func (b *bench) python(id string, args []any, kwargs map[string]any, opts ...delayed.Option) {
	b.T.Helper()
	call := delayed.NewPyTask("app.mail:send", args, kwargs)
	_, err := b.q.With(append(opts, delayed.TaskID(id))...).Enqueue(bg, call)
	b.Must(err)
}

var rowKeys = regexp.MustCompile(`<tr data-key="([^"]*)"`)

// ids returns the ids of the tasks that a page lists.
func listed(page string) (ids []string) {
	for _, m := range rowKeys.FindAllStringSubmatch(page, -1) {
		ids = append(ids, m[1])
	}
	return ids
}

// shows fails the test unless a page lists just the given tasks.
func (b *bench) shows(address string, want ...string) string {
	b.T.Helper()
	page := b.get(web.Operator, address)
	if got := listed(page); !slices.Equal(got, want) {
		b.T.Errorf("%s lists %q, expected %q", address, got, want)
	}
	return page
}

// count waits until a state holds a number of tasks.
func (b *bench) count(s state.Task, n int) {
	b.T.Helper()
	b.Until(fmt.Sprintf("%d tasks are %v", n, s), func() bool {
		q, err := b.ins.Queue(bg, queueName)
		b.Must(err)
		return q.Size(s) == n
	})
}

func TestTasksFilters(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := b.q.With(delayed.TaskID("fails"), delayed.Header("tenant", "acme"), delayed.Header("lang", "a=b")).
		Delay(greet, 42, "xx")
	b.Must(err)
	_, err = b.q.With(delayed.TaskID("fails-2")).Delay(greet, 7, "xx")
	b.Must(err)
	_, stop := b.work(delayed.WorkerConfig{}, greet)
	b.count(state.Retry, 2)
	stop()
	b.python("py", []any{map[string]any{"user": map[string]any{"name": "Ann"}}}, map[string]any{"to": "a@b"},
		delayed.In(time.Hour))
	tasks, err := b.ins.Find(bg, "fails")
	b.Must(err)
	for query, want := range map[string][]string{
		"":                                 {"fails", "fails-2"},
		"function=greet":                   {"fails", "fails-2"},
		"function=nothing":                 nil,
		"prefix=fails-":                    {"fails-2"},
		"text=42":                          {"fails"},
		"arg=0%3D42":                       {"fails"},
		"arg=0%3D42&text=7":                nil,
		"error=MAILBOX":                    {"fails", "fails-2"},
		"error=mailbox+7":                  {"fails-2"},
		"reason=failed":                    {"fails", "fails-2"},
		"reason=snoozed":                   nil,
		"header=tenant":                    {"fails"},
		"header=tenant%3Dacme&header=lang": {"fails"},
		"header=lang%3Da%3Db":              {"fails"},
		"header=tenant%3Dother":            nil,
		"worker=" + tasks[0].Worker:        {"fails", "fails-2"},
		"worker=w":                         nil,
		"group=g":                          nil,
		"older=1h":                         nil,
		"younger=1h":                       {"fails", "fails-2"},
		"younger=1d2h":                     {"fails", "fails-2"},
		"min=2":                            {"fails", "fails-2"},
		"min=3":                            nil,
		"max=1":                            nil,
		"function=greet&text=7&unknown=1":  {"fails-2"},
	} {
		page := b.get(web.Operator, "tasks?queue=mail&state=retry&order=oldest&"+query)
		got := listed(page)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s lists %q, expected %q", query, got, want)
		}
	}
	page := b.shows("tasks?queue=mail&state=retry&text=42&function=greet", "fails")
	b.has(page, "1 of 2 retry tasks match",
		`<a class="chip" href="tasks?function=greet&amp;queue=mail&amp;state=retry"`,
		`<a class="chip" href="tasks?queue=mail&amp;state=retry&amp;text=42"`, "mailbox 42 full", "web_test.greet(42,")
	b.shows("tasks?queue=mail&state=scheduled&arg=0.user.name%3DAnn&arg=", "py")
	b.shows("tasks?queue=mail&state=scheduled&arg=to%3Da%40b", "py")
	b.has(b.get(web.Viewer, "tasks?queue=mail&state=retry&text=none"), "No task matches")
	b.has(b.get(web.Viewer, "tasks?queue=mail&state=parked"), "No parked tasks")
}

// Wrong values are refused with a text that says what is expected.
func TestTasksRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.python("one", nil, nil)
	for query, want := range map[string]struct {
		status int
		text   string
	}{
		"queue=none":                           {404, "There is no queue none"},
		"state=lost":                           {400, "choose one of the tabs"},
		"order=odd":                            {400, "expected newest or oldest"},
		"cursor=rubbish":                       {400, "begin with its first page"},
		"older=yesterday":                      {400, "Older than: expected a duration"},
		"older=-1h":                            {400, "a duration that is not negative"},
		"min=none&max=0":                       {400, "Attempts, at most: expected a number from 1 on"},
		"header=%3Dx":                          {400, "expected a header as key=value"},
		"queue=%E2%80%AE%00%0A%22%3Cscript%3E": {404, `\u202e\x00\n&#34;&lt;script&gt;`},
	} {
		a := b.ask(web.Viewer, http.MethodGet, "tasks?"+query, nil)
		if a.Status != want.status || !strings.Contains(a.Body, want.text) {
			t.Errorf("%s answers %d, expected %d with %q:\n%s", query, a.Status, want.status, want.text, main(a.Body))
		}
	}
}

func TestTasksWithoutQueues(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.has(b.get(web.Viewer, "tasks"), "No queues yet")
}

// Without a queue or a state, the page chooses a list that has tasks.
func TestTasksChoice(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.python("later", nil, nil, delayed.In(time.Hour))
	_, err := delayed.NewQueue("archive", b.rdb).Enqueue(bg, delayed.NewPyTask("a:b", nil, nil))
	b.Must(err)
	b.has(b.get(web.Viewer, "tasks"), `<option value="archive" selected>`, `aria-current="page" class="pending"`)
	b.has(b.get(web.Viewer, "tasks?state=scheduled"), `<option value="mail" selected>`)
	b.has(b.get(web.Viewer, "tasks?queue=mail"), `aria-current="page" class="scheduled"`)
	b.has(b.get(web.Viewer, "tasks?state=archived"), `<option value="archive" selected>`, "No archived tasks")
}

func TestTasksPages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var want []string
	for i := range 120 {
		want = append(want, fmt.Sprintf("task-%03d", i))
		b.python(want[i], []any{i}, nil, delayed.At(time.Now().Add(time.Hour+time.Duration(i)*time.Second)))
	}
	next := regexp.MustCompile(`href="([^"]*)" rel="next"`)
	for _, order := range []string{"oldest", "newest"} {
		var got []string
		address := "tasks?queue=mail&state=scheduled&order=" + order
		for address != "" {
			page := b.get(web.Viewer, address)
			got = append(got, listed(page)...)
			address = ""
			if m := next.FindStringSubmatch(page); m != nil {
				address = html.UnescapeString(m[1])
			} else {
				b.has(page, "First page")
			}
		}
		if order == "newest" {
			slices.Reverse(got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s first: %d tasks, expected all in order: %v", order, len(got), got)
		}
	}
}

var lookedAt = regexp.MustCompile(`None of the ([\d\x{202f}]+) tasks that this page has looked at`)

// A page that has looked for as long as it may, without a match, says so, and its link goes on to the end of the list.
func TestTasksScanLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	m := wire.Message{Kind: wire.GoExtended, Path: "a.b"}
	args := []any{b.Name}
	for i := range 10_002 {
		m.Meta.ID = fmt.Sprint("t", i)
		args = append(args, m.Append(nil))
	}
	b.Do("RPUSH", args...)
	b.Do("HSET", strings.TrimSuffix(b.Name, queueName)+"queues", queueName, "")
	b.python("first", nil, nil)
	address := "tasks?queue=mail&state=pending&prefix=first"
	looked := 0
	for {
		page := b.get(web.Viewer, address)
		said := lookedAt.FindStringSubmatch(page)
		if said == nil {
			b.has(page, `data-key="first"`)
			break
		}
		b.has(page, "Nothing found so far")
		b.hasNot(page, "data-live")
		n, err := strconv.Atoi(strings.ReplaceAll(said[1], "\u202f", ""))
		b.Must(err)
		if n < 1000 || n > 10_000 {
			t.Errorf("a page has looked at %d tasks, expected 1,000 to 10,000", n)
		}
		looked += n
		next := regexp.MustCompile(`href="([^"]+)"[^>]*>Go on looking`).FindStringSubmatch(page)
		if next == nil {
			t.Fatalf("after %d tasks the page has no link to go on", looked)
		}
		address = html.UnescapeString(next[1])
	}
	if looked == 0 {
		t.Error("the first page has looked at the whole list")
	}
}

func TestTasksActions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	list := func(s state.Task) string {
		return url.Values{"queue": {queueName}, "state": {s.String()}}.Encode()
	}
	state1 := func(id string) string {
		found, err := b.ins.Task(bg, queueName, id)
		if err != nil {
			return "gone"
		}
		return found.State.String()
	}
	at := "tasks?queue=mail&state=scheduled"
	for _, verb := range []string{"run", "retry", "archive", "reschedule", "move", "cancel", "delete"} {
		for _, name := range []string{verb, "all-" + verb} {
			b.refused(web.Viewer, at, name, "list", list(state.Scheduled), "id", "x")
		}
	}
	for _, c := range []struct {
		verb   string
		fields []string
		from   []delayed.Option
		want   string
	}{
		{"run", nil, []delayed.Option{delayed.In(time.Hour)}, "pending"},
		{"archive", nil, []delayed.Option{delayed.In(time.Hour)}, "archived"},
		{"archive", nil, nil, "archived"},
		{"reschedule", []string{"when", "2h"}, nil, "scheduled"},
		{"reschedule", []string{"when", "2100-01-31 15:04"}, []delayed.Option{delayed.In(time.Hour)}, "scheduled"},
		{"move", []string{"to", "other"}, []delayed.Option{delayed.In(time.Hour)}, "gone"},
		{"cancel", nil, nil, "gone"},
		{"delete", nil, []delayed.Option{delayed.In(time.Hour)}, "gone"},
	} {
		id := c.verb + fmt.Sprint(len(c.from))
		b.python(id, nil, nil, c.from...)
		page := b.do(web.Operator, at, c.verb, append(c.fields, "list", list(state.Scheduled), "id", id)...)
		b.has(page, " 1 task.")
		if got := state1(id); got != c.want {
			t.Errorf("%s: the task is %s, expected %s", id, got, c.want)
		}
	}
	b.has(b.do(web.Operator, at, "retry", "list", list(state.Archived), "id", "archive1"), "Made pending 1 task")
	other, err := b.ins.Find(bg, "move1")
	b.Must(err)
	if other[0].Queue != "other" {
		t.Errorf("moved to %s", other[0].Queue)
	}
	re, err := b.ins.Task(bg, queueName, "reschedule1")
	b.Must(err)
	if re.Due.Year() != 2100 {
		t.Errorf("rescheduled to %v", re.Due)
	}
	for _, c := range [][]string{
		{"run", "list", list(state.Scheduled), "!no task is selected"},
		{"run", "id", "x", "!does not say which queue"},
		{"run", "list", "queue=mail&state=scheduled&fonction=x", "id", "x", "!expected the filters of a list"},
		{"all-delete", "list", "queue=mail&state=scheduled&fonction=x", "!expected the filters of a list"},
		{"all-delete", "list", "queue=mail&state=active", "!cannot delete active tasks"},
		{"reschedule", "list", list(state.Scheduled), "id", "x", "!when?"},
		{"reschedule", "list", list(state.Scheduled), "id", "x", "when", "soon", "!expected a duration from now on"},
		{"move", "list", list(state.Scheduled), "id", "x", "!where to?"},
		{"move", "list", list(state.Scheduled), "id", "x", "to", "mail", "!already"},
		{"move", "list", list(state.Scheduled), "id", "x", "to", "a b", "!expected printable characters"},
		{"run", "list", list(state.Scheduled), "id", "none", "!It went wrong with 1 task"},
		{"run", "list", list(state.Scheduled), "id", "%zz", "!expected the id"},
	} {
		last := len(c) - 1
		page := b.do(web.Operator, at, c[0], c[1:last]...)
		b.has(page, `<p class="notice bad"`, c[last][1:])
	}
	tooMany := []string{"list", list(state.Scheduled)}
	for range 1001 {
		tooMany = append(tooMany, "id", "x")
	}
	b.has(b.do(web.Operator, at, "run", tooMany...), "expected at most 1000 selected tasks")
}

// The ids of a form may come from several pages of the list.
func TestTasksSelectionOverPages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	fields := []string{"list", "queue=mail&state=scheduled"}
	for i := range 130 {
		id := fmt.Sprintf("task %03d/%%", i)
		b.python(id, nil, nil, delayed.In(time.Hour))
		if i%2 == 0 {
			fields = append(fields, "id", url.QueryEscape(id))
		}
	}
	at := "tasks?queue=mail&state=scheduled&text=send"
	b.has(b.get(web.Operator, at), `data-selection="mail scheduled"`, `value="task&#43;000%2F%25"`)
	page := b.do(web.Operator, at, "delete", fields...)
	b.has(page, "Deleted 65 tasks.", "looked at 50 of 65 scheduled tasks")
}

func TestTasksAll(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 30 {
		b.python(fmt.Sprint("t", i), []any{i % 3}, nil, delayed.In(time.Hour))
	}
	at := "tasks?queue=mail&state=scheduled&arg=0%3D1"
	page := b.get(web.Operator, at)
	b.has(page, `name="list" value="arg=0%3D1&amp;queue=mail&amp;state=scheduled"`,
		"Delete the 10 scheduled tasks that match, of 30 in queue mail?")
	b.has(b.get(web.Operator, "tasks?queue=mail&state=scheduled"), "Delete all 30 scheduled tasks of queue mail?")
	b.hasNot(b.get(web.Viewer, at), "all-delete", `type="checkbox"`)
	a := b.post(web.Operator, at, "all-reschedule", "list", "queue=mail&state=scheduled&arg=0%3D1", "when-all", "3h",
		"when", "")
	job := a.Header.Get("Location")
	if !strings.HasPrefix(job, "job?id=") {
		t.Fatalf("sent to %q, expected a job: %s", job, a.Body)
	}
	b.has(b.ended(job, "done"), "<dt>Done</dt><dd>10</dd>", "reschedule to 20")
	a = b.post(web.Operator, at, "all-delete", "list", "queue=mail&state=scheduled&arg=0%3D2")
	b.has(b.ended(a.Header.Get("Location"), "done"), "Delete: some scheduled tasks of mail")
	b.count(state.Scheduled, 20)
}

// The queue beside the button for all counts, and not the one that the form has for the tasks that are selected.
func TestTasksMoveAll(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 5 {
		b.python(fmt.Sprint("t", i), []any{i % 2}, nil, delayed.In(time.Hour))
	}
	at := "tasks?queue=mail&state=scheduled&arg=0%3D1"
	a := b.post(web.Operator, at, "all-move", "list", "queue=mail&state=scheduled&arg=0%3D1", "to-all", "other",
		"to", "")
	job := a.Header.Get("Location")
	if !strings.HasPrefix(job, "job?id=") {
		t.Fatalf("sent to %q, expected a job: %s", job, a.Body)
	}
	b.has(b.ended(job, "done"), "<dt>Done</dt><dd>2</dd>")
	b.count(state.Scheduled, 3)
	for _, id := range []string{"t1", "t3"} {
		found, err := b.ins.Find(bg, id)
		b.Must(err)
		if len(found) != 1 || found[0].Queue != "other" {
			t.Errorf("task %s was found as %+v, expected it in queue other", id, found)
		}
	}
	b.has(b.do(web.Operator, at, "all-move", "list", "queue=mail&state=scheduled", "to-all", "mail", "to", "other"),
		`<p class="notice bad"`, "already")
}

// Who does not see arguments can neither filter by them nor read them out of the page.
func TestTasksHidden(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(cfg *web.Config) { cfg.HideArguments = true })
	b.python("t", []any{"secret-argument"}, nil, delayed.In(time.Hour), delayed.Header("key", "secret-header"))
	at := "tasks?queue=mail&state=scheduled"
	page := b.get(web.Viewer, at)
	b.hasNot(page, "secret-", `name="text"`, `name="arg"`, `name="error"`, `name="header"`)
	b.has(page, `name="function"`, "app.mail:send(…)")
	b.has(b.get(web.Operator, at), "secret-argument", `name="arg"`)
	for _, f := range []string{"text=s", "arg=0", "error=e", "header=key"} {
		if a := b.ask(web.Viewer, http.MethodGet, at+"&"+f, nil); a.Status != http.StatusForbidden {
			t.Errorf("%s answers %d, expected %d", f, a.Status, http.StatusForbidden)
		}
	}
	b.get(web.Viewer, at+"&text=&function=send")
	f := inspect.Filter{Text: "secret-argument"}
	id, err := b.h.StartJob(operator, queueName, state.Scheduled, f, inspect.RunNow())
	b.Must(err)
	b.hasNot(b.get(web.Viewer, "job?id="+id)+b.get(web.Viewer, "jobs"), "secret-argument")
	b.has(b.get(web.Operator, "job?id="+id), "secret-argument")
}

var errBreaks = errors.New("\u202ered\x1b[31m <b>bold</b>\x00")

func breaks(context.Context, string) error { return errBreaks }

// hostileIDs are ids that break what is not escaped.
func hostileIDs() []string {
	return []string{
		"a/b/../c", "..", "a b+c%20", "nul\x00", "line\nend\r", "\u202eright to left", `"quoted'<script>`, "%2F%zz",
		strings.Repeat("x", wire.MaxTaskID), "é\u0301", "{{.}}", "#fragment?q=1&r=2",
	}
}

func TestTasksHostile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, id := range hostileIDs() {
		_, err := b.q.With(delayed.TaskID(id), delayed.MaxRetry(0), delayed.Header("k\u202e", "v\n<i>")).
			Delay(breaks, id+"<script>\u202e")
		b.Must(err)
	}
	_, stop := b.work(delayed.WorkerConfig{}, breaks)
	b.count(state.Archived, len(hostileIDs()))
	stop()
	page := b.get(web.Operator, "tasks?queue=mail&state=archived")
	b.hasNot(page, "\u202e", "\x00", "\x1b", "<script>", "<b>bold")
	boxes := regexp.MustCompile(`name="id" value="([^"]*)"`).FindAllStringSubmatch(page, -1)
	links := regexp.MustCompile(`href="(task\?[^"]*)"`).FindAllStringSubmatch(page, -1)
	fields := []string{"list", "queue=mail&state=archived"}
	for i := range boxes {
		fields = append(fields, "id", html.UnescapeString(boxes[i][1]))
		address, err := url.Parse(html.UnescapeString(links[i][1]))
		b.Must(err)
		if id := address.Query().Get("id"); !slices.Contains(hostileIDs(), id) {
			t.Errorf("a link leads to %q", id)
		}
	}
	b.has(b.do(web.Operator, "tasks?queue=mail&state=archived", "delete", fields...),
		fmt.Sprintf("Deleted %d tasks.", len(hostileIDs())))
}
