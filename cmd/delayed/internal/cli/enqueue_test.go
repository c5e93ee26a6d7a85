package cli_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

func TestEnqueueRunsWithTheGivenArguments(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	type call struct {
		small uint8
		ratio float64
		bytes string
		at    time.Time
		user  *User
		lists map[string][]int
		flag  bool
		any   any
	}
	calls := make(chan call, 1)
	b.work(delayed.Func(func(_ context.Context, small uint8, ratio float64, bytes []byte, at time.Time, user *User,
		lists map[string][]int, flag bool, loose any,
	) {
		calls <- call{small, ratio, string(bytes), at, user, lists, flag, loose}
	}, delayed.Name("app/kit.Types")))
	b.ok("enqueue", "kit.Types", "200", "3", `"AP8="`, `"2026-01-31T15:04:05Z"`, `{"Name":"Ann"}`, `{"a":[1,2]}`,
		"true", `[1,"x"]`)
	got := redistest.Await(b.Bench, "the call", calls)
	if got.small != 200 || got.ratio != 3 || got.bytes != "\x00\xff" || got.user.Name != "Ann" ||
		!got.at.Equal(time.Date(2026, 1, 31, 15, 4, 5, 0, time.UTC)) || got.lists["a"][1] != 2 || !got.flag {
		t.Errorf("the handler was called with %+v", got)
	}
}

func TestEnqueueWaits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work(delayed.Func(add, delayed.Name("sums.Add")), fails)
	out := b.ok("enqueue", "sums.Add", "1", "2", "39", "--wait", "--id", "s")
	if out != "s\n42\n" {
		t.Errorf("enqueue --wait prints %q", out)
	}
	r := b.run("enqueue", "fails", "1", "--max-retry", "0", "--wait")
	if r.code != 1 || !strings.Contains(r.err, `mailbox\nfull`) {
		t.Errorf("enqueue --wait of what fails: code %d, %s", r.code, r.err)
	}
}

func TestEnqueueOptions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work(welcome)
	b.ok("enqueue", "cli_test.welcome", "1", `"en"`, "--in", "1h", "--id", "a", "--max-retry", "7", "--timeout", "90s",
		"--header", "tenant=x", "--backoff", "1m,1h", "--retention", "1d", "--unique", "1h", "--ttl", "2d")
	out := b.ok("task", "a")
	for _, want := range []string{
		"attempt:      1 of 8", "timeout 1m30s", "header:       tenant=x", "backoff 1m00s, backoff 1h00m",
		"retention 1d0h", "expires ", "lock u:", "state:        scheduled", "due: ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the task lacks %q: %s", want, out)
		}
	}
	b.fails(1, "", "enqueue", "welcome", "1", `"en"`, "--in", "1h", "--unique", "1h") // as the first one
	b.ok("enqueue", "welcome", "1", `"en"`, "--in", "1h", "--unique", "1h", "--on-conflict", "skip")
	if n := b.size(queueName, state.Scheduled); n != 1 {
		t.Errorf("%d tasks, expected 1", n)
	}
	for _, c := range []struct {
		code int
		text string
		args []string
	}{
		{2, "expected 1 argument, found 0", nil},
		{3, `has published "nobody"`, []string{"nobody"}},
		{2, "expected KEY=VALUE", []string{"welcome", "1", `"en"`, "--header", "x"}},
		{2, "expected fail, skip or replace", []string{"welcome", "1", `"en"`, "--on-conflict", "x"}},
		{2, "expected a duration", []string{"welcome", "1", `"en"`, "--in", "soon"}},
		{2, "expected its queue too", []string{"mod:func", "1"}},
		{2, "queue: expected the name of one", []string{"a.B", "--unchecked"}},
		{2, "kwargs: expected them only of Python", []string{"welcome", "--kwargs", "{}"}},
	} {
		b.fails(c.code, c.text, append([]string{"enqueue"}, c.args...)...)
	}
	b.ok("enqueue", "mod:func", "1", "--kwargs", `{"to":"ann"}`, "--queue", "py")
	if out := b.ok("tasks", "py"); !strings.Contains(out, `mod:func(1, to="ann")`) {
		t.Errorf("the Python task is %s", out)
	}
	b.ok("enqueue", "example.com/x.Y", "1", "--unchecked", "--queue", "blind")
	if out := b.ok("tasks", "blind"); !strings.Contains(out, "x.Y(1)") {
		t.Errorf("the unchecked task is %s", out)
	}
}

// TestEnqueuePython checks calls of Python functions against what their workers have published.
func TestEnqueuePython(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.work(welcome)
	b.Do("HSET", b.Name+"_functions", w.ID(), `{"version": 1, "functions": [{"path": "shop.orders:bill", "optional": 1,
		"parameters": [{"name": "number", "go": "int", "type": {"kind": "int64"}},
		{"name": "lang", "go": "str", "type": {"kind": "string"}}]}]}`)
	later := []string{"--in", "1h"}
	for _, args := range [][]string{
		{"orders:bill", "42"},
		{"shop.orders:bill", "42", `"en"`, "-q", queueName},
		{"shop.orders:bill", "--kwargs", `{"number":7}`},
		{"orders:bill", `"x"`, "--unchecked", "-q", queueName},
		{"orders:unknown", `"x"`, "-q", queueName},
	} {
		b.ok(append(append([]string{"enqueue"}, args...), later...)...)
	}
	out := b.ok("tasks", queueName)
	for _, call := range []string{
		"shop.orders:bill(42)", `shop.orders:bill(42, "en")`, "shop.orders:bill(number=7)", ` orders:bill("x")`,
		`orders:unknown("x")`,
	} {
		if !strings.Contains(out, call) {
			t.Errorf("no %s in %s", call, out)
		}
	}
	for text, args := range map[string][]string{
		"argument 1 of shop.orders:bill(": {"orders:bill", `"x"`},
		"give --unchecked":                {"shop.orders:bill", "1", "2", "-q", queueName},
		"found 0":                         {"orders:bill"},
		"given twice":                     {"orders:bill", "1", "--kwargs", `{"number":7}`},
		"expected its queue too":          {"orders:nothing", "1"},
		"expected a JSON object":          {"orders:bill", "1", "--kwargs", "7"},
	} {
		b.fails(2, text, append([]string{"enqueue"}, args...)...)
	}
}

// TestEnqueueWithoutAuditLog ends well, so that no script enqueues the call once more.
func TestEnqueueWithoutAuditLog(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	log := strings.TrimSuffix(b.Name, queueName) + "delayed_audit"
	b.Do("SET", log, "another program's")
	r := b.run("enqueue", "a.b", "1", "--unchecked", "--queue", queueName, "--in", "1h")
	if r.code != 0 || r.out == "" || !strings.Contains(r.err, "warning: ") || !strings.Contains(r.err, "audit log") {
		t.Errorf("exit code %d: %q, %q", r.code, r.out, r.err)
	}
	if n := b.Int("ZCARD", b.Name+"_scheduled"); n != 1 {
		t.Errorf("%d tasks are scheduled", n)
	}
	b.Do("DEL", log)
}
