package web_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/web"
)

// editAt returns the address of the form for a task.
func editAt(id string) string {
	return "edit?" + url.Values{"queue": {queueName}, "id": {id}}.Encode()
}

var formFields = regexp.MustCompile(`name="(was|id|queue)" value="([^"]*)"`)

// edit sends the form of a task with some of its fields typed.
func (b *bench) edit(r web.Role, id, action string, typed ...string) answer {
	b.T.Helper()
	page := b.get(web.Admin, editAt(id))
	for _, m := range formFields.FindAllStringSubmatch(page, -1) {
		typed = append(typed, m[1], html.UnescapeString(m[2]))
	}
	return b.post(r, editAt(id), action, typed...)
}

// call returns the state and the call of a task.
func (b *bench) call(id string) string {
	b.T.Helper()
	t, err := b.ins.Task(bg, queueName, id)
	b.Must(err)
	return t.State.String() + " " + t.Call
}

func TestEdit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := Person{Name: "Ann", Home: &Home{Street: "Main"}, Tags: map[string][]int{"a": {1}}}
	_, err := b.q.With(delayed.TaskID("m"), delayed.In(time.Hour), delayed.Header("tenant", "acme")).
		Delay(move, p, 90*time.Second, "hi\n\"you\"")
	b.Must(err)
	b.has(b.get(web.Admin, editAt("m")), "It cannot be edited here", "no worker of its queue has published")
	_, stop := b.work(delayed.WorkerConfig{}, move, greet)
	b.Must(b.q.Pause(bg))
	for _, r := range []web.Role{web.Viewer, web.Operator} {
		if a := b.ask(r, http.MethodGet, editAt("m"), nil); a.Status != http.StatusForbidden {
			t.Errorf("%v: the form answers %d", r, a.Status)
		}
		b.refused(r, editAt("m"), "save", "queue", queueName, "id", "m")
	}
	var page string
	b.Until("the page knows the function", func() bool {
		page = b.get(web.Admin, editAt("m"))
		return !strings.Contains(page, "It cannot be edited here")
	})
	b.has(page, "web_test.move(", "<code>web_test.Person</code>", "<code>time.Duration</code>", `value="90000000000"`,
		"Save and run now", `&#34;Street&#34;:&#34;Main&#34;`, `value="&#34;hi\n\&#34;you\&#34;&#34;"`)
	before := b.call("m")
	person := `{"Name":"Bob","Home":null,"Tags":{}}`
	a := b.edit(web.Admin, "m", "save", "arg1", `{"Nam":"Bob"}`, "arg2", "soon", "arg3", "what I typed")
	if a.Status != http.StatusUnprocessableEntity || b.call("m") != before {
		t.Errorf("wrong arguments: %d, %s", a.Status, b.call("m"))
	}
	b.has(a.Body, `{&#34;Nam&#34;:&#34;Bob&#34;}`, "expected fields of", `value="soon"`, `value="what I typed"`,
		`aria-invalid="true"`)
	a = b.edit(web.Admin, "m", "save", "arg1", person, "arg2", `"2m"`, "arg3", "bye")
	if a.Status != http.StatusSeeOther {
		t.Fatalf("%d: %s", a.Status, main(a.Body))
	}
	b.has(b.get(web.Admin, a.Header.Get("Location")), "The task has other arguments now.", "acme")
	want := `web_test.move({Home: nil, Name: "Bob", Tags: {}}, 120000000000, "bye")`
	if got := b.call("m"); got != "scheduled "+want {
		t.Errorf("saved %s, expected %s", got, want)
	}
	// What nobody has changed is saved as it was.
	page = b.get(web.Admin, editAt("m"))
	var same []string
	fields := regexp.MustCompile(
		`<textarea id="(arg\d)"[^>]*>([^<]*)<|<input id="(arg\d)"[^>]*? value="([^"]*)"`)
	for _, m := range fields.FindAllStringSubmatch(page, -1) {
		same = append(same, m[1]+m[3], html.UnescapeString(m[2]+m[4]))
	}
	if a = b.edit(web.Admin, "m", "run", same...); a.Status != http.StatusSeeOther {
		t.Errorf("%d: %s", a.Status, main(a.Body))
	}
	if got := b.call("m"); got != "pending "+want {
		t.Errorf("saved %s, expected %s", got, want)
	}
	stop()
	records, err := b.ins.Audit(bg, 0, 3)
	b.Must(err)
	if len(records) < 3 || records[0].Action != "run" || records[1].Action != "edit" || records[1].Actor != "admin" {
		t.Errorf("the audit log has %+v", records)
	}
}

// Who saves what somebody else has changed meanwhile is warned first.
func TestEditMeanwhile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.python("py", []any{1, "a"}, map[string]any{"to": "ann", "n": 2.5}, delayed.In(time.Hour))
	page := b.get(web.Admin, editAt("py"))
	b.has(page, "arguments are not checked", `[1,&#34;a&#34;]`, `{&#34;n&#34;:2.5,&#34;to&#34;:&#34;ann&#34;}`)
	was := formFields.FindAllStringSubmatch(page, -1)
	_, err := b.ins.Do(bg, queueName, inspect.Edit(delayed.NewPyTask("app.mail:send", []any{2}, nil)), "py")
	b.Must(err)
	fields := []string{"args", `[3]`, "kwargs", `{"to":"bob"}`}
	for _, m := range was {
		fields = append(fields, m[1], m[2])
	}
	a := b.post(web.Admin, editAt("py"), "save", fields...)
	if a.Status != http.StatusUnprocessableEntity {
		t.Errorf("answers %d", a.Status)
	}
	b.has(a.Body, "Somebody has changed its arguments meanwhile", `[3]`)
	a = b.edit(web.Admin, "py", "save", "args", `[3`, "kwargs", `{"to":"bob"}`)
	b.has(a.Body, "expected a JSON array", "[3")
	a = b.edit(web.Admin, "py", "save", "args", `[3]`, "kwargs", `{"to":"bob"}`)
	if got := b.call("py"); got != `scheduled app.mail:send(3, to="bob")` || a.Status != http.StatusSeeOther {
		t.Errorf("saved %s (%d)", got, a.Status)
	}
	b.do(web.Operator, taskAt("py"), "archive", "queue", queueName, "id", "py")
	b.edit(web.Admin, "py", "run", "args", `[4]`, "kwargs", "")
	if got := b.call("py"); got != `pending app.mail:send(4)` {
		t.Errorf("saved and run: %s", got)
	}
}

// Arguments that are not shown as they are cannot be edited: saving would replace them by what is shown.
func TestEditRedacted(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(cfg *web.Config) {
		cfg.Redact = func(c *inspect.Contents) {
			for i := range c.Args {
				if c.Args[i] == "secret" {
					c.Args[i] = "***"
				}
			}
		}
	})
	b.python("all", []any{"open"}, nil, delayed.In(time.Hour))
	b.python("part", []any{"secret"}, nil, delayed.In(time.Hour))
	b.has(b.get(web.Admin, editAt("all")), "open", "Save")
	page := b.get(web.Admin, editAt("part"))
	b.has(page, "does not show the arguments as they are")
	b.hasNot(page, "secret", "***")
	b.has(b.do(web.Admin, editAt("part"), "save", "queue", queueName, "id", "part", "args", "[1]"),
		"does not show the arguments as they are")
	if got := b.call("part"); !strings.Contains(got, "secret") {
		t.Errorf("the task is %s", got)
	}
}

func TestEditRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.python("bytes", []any{[]byte{1}}, nil, delayed.In(time.Hour))
	b.python("done", nil, nil, delayed.In(time.Hour), delayed.KeepResult(time.Hour))
	b.do(web.Operator, taskAt("done"), "cancel", "queue", queueName, "id", "done")
	b.has(b.get(web.Admin, editAt("bytes")), "JSON cannot hold its bytes")
	b.has(b.get(web.Admin, editAt("done")), "The task is canceled.")
	for address, want := range map[string]int{
		editAt("none"): http.StatusNotFound, "edit": http.StatusBadRequest, editAt(""): http.StatusBadRequest,
		"edit?queue=none&id=x": http.StatusNotFound,
	} {
		if a := b.ask(web.Admin, http.MethodGet, address, nil); a.Status != want {
			t.Errorf("%s answers %d, expected %d", address, a.Status, want)
		}
	}
	read := newBench(t, func(cfg *web.Config) { cfg.ReadOnly = true })
	read.python("x", nil, nil)
	if a := read.ask(web.Admin, http.MethodGet, editAt("x"), nil); a.Status != http.StatusForbidden {
		t.Errorf("a dashboard that changes nothing answers %d", a.Status)
	}
}
