package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web"
)

// Address is an argument with fields.
type Address struct {
	Street string
	Tags   []string
}

// enqueued sends the form as an admin, and fails the test unless that leads to the task.
func (b *bench) enqueued(id string, fields ...string) {
	b.T.Helper()
	a := b.post(web.Admin, "enqueue", "enqueue", fields...)
	to := a.Header.Get("Location")
	if a.Status != http.StatusSeeOther || !strings.Contains(to, "task?id="+id+"&notice=") {
		b.T.Fatalf("the form answers %d and leads to %q:\n%s", a.Status, to, main(a.Body))
	}
}

// The form for calls is made of the signature that workers publish, and an admin enqueues by it.
func TestEnqueueByForm(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.has(b.get(web.Admin, "enqueue"), "No queues yet")
	fn := delayed.Func(func(int8, string, Address, time.Duration, ...string) {},
		delayed.Name("example.com/app/mail.Send"))
	b.work(delayed.WorkerConfig{}, fn)
	address := "enqueue?queue=mail&function=example.com/app/mail.Send"
	b.Until("the form has fields", func() bool {
		a := b.ask(web.Admin, http.MethodGet, address, nil)
		return strings.Contains(a.Body, `name="arg4"`)
	})
	for _, role := range []web.Role{web.Viewer, web.Operator} {
		if a := b.ask(role, http.MethodGet, address, nil); a.Status != http.StatusForbidden {
			t.Errorf("the form for the %v: %d", role, a.Status)
		}
		b.refused(role, "enqueue", "enqueue", "queue", queueName, "function", "example.com/app/mail.Send")
	}
	page := b.get(web.Admin, address)
	b.has(page, "mail.Send(int8, string, web_test.Address, time.Duration, ...string)", "<code>int8</code>",
		`placeholder="42"`, "{Street string, Tags list of string}", "&#34;90s&#34;", "...string", `name="o-header"`)
	b.hasNot(page, `name="kwargs"`)

	fields := func(pairs ...string) []string {
		return append([]string{"queue", queueName, "function", "example.com/app/mail.Send"}, pairs...)
	}
	wrong := b.post(web.Admin, "enqueue", "enqueue", fields("arg1", "1000", "arg2", hostile, "arg3", `{"Town":1}`,
		"arg5", `"one"`, "o-in", "soon", "o-max-retry", "-1", "o-header", "nothing")...)
	if wrong.Status != http.StatusUnprocessableEntity {
		t.Fatalf("a wrong form: %d %s", wrong.Status, wrong.Body)
	}
	b.has(wrong.Body, `value="1000"`, "expected a whole number from -128 to 127", "expected fields of web_test.Address",
		"Street, Tags", "expected a value of type time.Duration, such as", "expected an array for []string",
		"expected a whole number, 0 or more", "expected KEY=VALUE", `value="soon"`, "<details class=\"card\" open")
	b.harmless(wrong.Body)
	if n := strings.Count(wrong.Body, `class="field wrong"`); n != 7 {
		t.Errorf("%d fields are wrong", n)
	}

	b.enqueued("mine", fields("arg1", "7", "arg2", `say "hi"`, "arg3",
		`{"Street":"Main","Tags":["a"]}`, "arg4", `"90s"`, "arg5", `["x","y"]`, "o-at", "2100-01-31 15:04",
		"o-id", "mine", "o-max-retry", "0", "o-header", "tenant=acme\r\nlang = en\r\n", "o-timeout", "1m")...)
	task, err := b.ins.Task(bg, queueName, "mine")
	b.Must(err)
	if task.State != state.Scheduled || task.Call != `mail.Send(7, "say \"hi\"", {Street: "Main", Tags: ["a"]}, `+
		`90000000000, ["x", "y"])` || task.Headers["tenant"] != "acme" || task.Headers["lang"] != "en" ||
		task.Options.Timeout != time.Minute || task.Options.MaxRetry == nil || *task.Options.MaxRetry != 0 ||
		!task.Due.Equal(time.Date(2100, 1, 31, 15, 4, 0, 0, time.UTC)) {
		t.Errorf("%s: %+v", task.Call, task)
	}
	again := b.post(web.Admin, "enqueue", "enqueue", fields("arg1", "7", "arg2", "x", "arg3", "{}", "arg4", "1",
		"o-id", "mine", "o-in", "1h")...)
	b.has(again.Body, `class="notice bad"`, "mine", `value="1h"`)
	records, err := b.ins.Audit(bg, 0, 10)
	b.Must(err)
	if len(records) != 1 || records[0].Actor != "admin" || records[0].Action != "enqueue" {
		t.Errorf("%+v", records)
	}
}

// Functions that nobody has published, and those of Python, can be called too.
func TestEnqueueOfOtherFunctions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work(delayed.WorkerConfig{}, spills)
	b.Until("the queue is known", func() bool {
		return strings.Contains(b.get(web.Admin, "enqueue"), "value=\"mail\"")
	})
	b.has(b.get(web.Admin, "enqueue?queue=mail&function=shop.orders:bill"), "its arguments are not checked",
		`name="kwargs"`, `name="args"`)
	b.has(b.get(web.Admin, "enqueue?queue=mail"), "Choose a function")
	wrong := b.post(web.Admin, "enqueue", "enqueue", "queue", queueName, "function", "shop.orders:bill", "args", "42",
		"kwargs", "[1]")
	b.has(wrong.Body, "expected a JSON array", ">42</textarea>")
	b.enqueued("py", "queue", queueName, "function", "shop.orders:bill", "args", `[42, "x"]`,
		"kwargs", `{"to": "ann"}`, "o-id", "py", "o-in", "1h")
	task, err := b.ins.Task(bg, queueName, "py")
	b.Must(err)
	if !task.Python || task.Call != `shop.orders:bill(42, "x", to="ann")` {
		t.Errorf("%+v", task.Call)
	}
	b.enqueued("go", "queue", queueName, "function", "mail.New", "args", "", "o-id", "go", "o-in", "1h")
	if task, err = b.ins.Task(bg, queueName, "go"); err != nil || task.Function != "mail.New" {
		t.Errorf("%v %+v", err, task)
	}
	missing := b.post(web.Admin, "enqueue", "enqueue", "queue", queueName)
	if missing.Status != http.StatusSeeOther {
		t.Errorf("without a function: %d", missing.Status)
	}
}

// A Python function's fields are checked by its annotations; what follows one that is left out goes by its name.
func TestEnqueueOfPublishedPythonFunctions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w, _ := b.work(delayed.WorkerConfig{}, spills)
	key := b.Name + "_functions"
	b.Until("functions are published", func() bool { return b.Int("HEXISTS", key, w.ID()) == 1 })
	b.Do("HSET", key, w.ID(), `{"version": 1, "functions": [{"path": "shop.orders:bill", "optional": 2, `+
		`"variadic": true, "parameters": [`+
		`{"name": "number", "go": "int", "type": {"kind": "int64"}}, `+
		`{"name": "lang", "go": "str", "type": {"kind": "string"}}, `+
		`{"name": "copies", "go": "int", "type": {"kind": "int64"}}, `+
		`{"name": "rest", "go": "list[str]", "type": {"kind": "list", "elem": {"kind": "string"}}}]}]}`)
	address := "enqueue?queue=mail&function=shop.orders:bill"
	b.Until("the form has its fields", func() bool {
		return strings.Contains(b.get(web.Admin, address), `name="arg3"`)
	})
	b.has(b.get(web.Admin, address), "number", "lang", "copies", "Keyword arguments", "shop.orders:bill(number int",
		"rest ...str)")
	fields := []string{"queue", queueName, "function", "shop.orders:bill", "o-id", "py", "o-in", "1h"}
	wrong := b.post(web.Admin, "enqueue", "enqueue", append(fields, "arg1", "many")...)
	b.has(wrong.Body, "expected JSON", `value="many"`)
	b.enqueued("py", append(fields, "arg1", "7", "arg3", "2", "kwargs", `{"to": "ann"}`)...)
	task, err := b.ins.Task(bg, queueName, "py")
	b.Must(err)
	if task.Call != `shop.orders:bill(7, copies=2, to="ann")` || !task.Python {
		t.Errorf("%s", task.Call)
	}
	b.has(b.get(web.Viewer, "functions"), "shop.orders:bill")
}
