package delayedtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/delayedtest"
)

const here = "github.com/godelayed/delayed/delayedtest_test."

type order struct {
	ID    int64
	Lines []string
	Notes map[string]any
}

func welcome(_ context.Context, userID int64, lang string) error { return nil }
func receipt(o order) error                                      { return nil }
func digest(userID int, articles ...string)                      {}
func ping()                                                      {}

func delay(t testing.TB, q *delayed.Queue, fn any, args ...any) *delayed.Ref {
	t.Helper()
	ref, err := q.Delay(fn, args...)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func TestRequireEnqueued(t *testing.T) {
	t.Parallel()
	q := delayedtest.NewQueue(t)
	delay(t, q, welcome, 42, "en")
	delay(t, q.With(delayed.In(time.Hour), delayed.MaxRetry(3)), digest, 7, "tea", "biscuits")
	delay(t, q, receipt, order{ID: 5, Lines: []string{"tea"}, Notes: map[string]any{"a": 1, "b": []byte("x")}})
	delay(t, q, ping)

	for name, test := range map[string]func(t testing.TB){
		"other integer": func(t testing.TB) { delayedtest.RequireEnqueued(t, q, welcome, uint8(42), "en") },
		"variadic":      func(t testing.TB) { delayedtest.RequireEnqueued(t, q, digest, 7, "tea", "biscuits") },
		"variadic, slice": func(t testing.TB) {
			delayedtest.RequireEnqueued(t, q, digest, 7, []string{"tea", "biscuits"})
		},
		"struct": func(t testing.TB) {
			delayedtest.RequireEnqueued(t, q, receipt,
				order{ID: 5, Lines: []string{"tea"}, Notes: map[string]any{"b": []byte("x"), "a": 1}})
		},
		"no arguments": func(t testing.TB) { delayedtest.RequireEnqueued(t, q, ping) },
		"any":          func(t testing.TB) { delayedtest.RequireEnqueued(t, q, welcome, delayedtest.Any, "en") },
		"any args":     func(t testing.TB) { delayedtest.RequireEnqueued(t, q, digest, delayedtest.AnyArgs) },
		"count":        func(t testing.TB) { delayedtest.RequireCount(t, q, 1, welcome, delayedtest.AnyArgs) },
		"none":         func(t testing.TB) { delayedtest.RequireCount(t, q, 0, welcome, 43, "en") },
		"refuted":      func(t testing.TB) { delayedtest.RefuteEnqueued(t, q, digest, 7, "tea") },
	} {
		t.Run(name, func(t *testing.T) { passes(t, test) })
	}

	instead := []string{
		"enqueued are", here + `welcome(42, "en")` + "\tpending", here + "digest(", "scheduled, due in 1h0m0s",
		here + "ping()\tpending",
	}
	for name, test := range map[string]struct {
		test  func(t testing.TB)
		parts []string
	}{
		"other argument": {
			func(t testing.TB) { delayedtest.RequireEnqueued(t, q, welcome, 43, "en") },
			append(instead, `expected on queue "test"`, here+`welcome(43, "en")`),
		},
		"other count": {
			func(t testing.TB) { delayedtest.RequireCount(t, q, 2, ping) },
			append(instead, "2 times, found 1 times"),
		},
		"refuted": {
			func(t testing.TB) { delayedtest.RefuteEnqueued(t, q, welcome, delayedtest.AnyArgs) },
			append(instead, "not expected", "welcome(AnyArgs)"),
		},
		"not empty": {func(t testing.TB) { delayedtest.RequireEmpty(t, q) }, instead},
		"no such call": {
			//delayed:allow the test expects the refusal
			func(t testing.TB) { delayedtest.RequireEnqueued(t, q, welcome, "42", "en") },
			[]string{"cannot be enqueued", "argument 1: expected int64"},
		},
		"no function": {
			//delayed:allow the test expects the refusal
			func(t testing.TB) { delayedtest.RequireEnqueued(t, q, "welcome") },
			[]string{"cannot be enqueued"},
		},
		"fewer arguments": {func(t testing.TB) {
			delayedtest.RequireEnqueued(t, q, digest, 7, "tea", delayedtest.Any, delayedtest.Any)
		}, instead},
	} {
		t.Run(name, func(t *testing.T) { fails(t, test.test, test.parts...) })
	}
	fails(t, func(t testing.TB) { delayedtest.RequireEnqueued(t, delayedtest.NewQueue(t), ping) },
		"nothing is enqueued")
}

// TestRequireEnqueuedByPath looks for tasks whose functions this program does not have.
func TestRequireEnqueuedByPath(t *testing.T) {
	t.Parallel()
	q := delayedtest.NewQueue(t)
	py := func(to string) *delayed.Task {
		return delayed.NewPyTask("mail:send", []any{1, to}, map[string]any{"lang": "en"})
	}
	for _, task := range []*delayed.Task{
		py("ann"), delayed.NewGoTask("example.com/mail.Welcome", 42, "en"),
		delayed.NewGoTask(here+"welcome", 1, "de"),
	} {
		if _, err := q.Enqueue(t.Context(), task); err != nil {
			t.Fatal(err)
		}
	}
	delayedtest.RequireEnqueued(t, q, py("ann"))
	delayedtest.RequireEnqueued(t, q, delayed.NewGoTask("example.com/mail.Welcome", 42, "en"))
	delayedtest.RequireEnqueued(t, q, welcome, 1, "de") // given by path, found by function
	delayedtest.RefuteEnqueued(t, q, py("bob"))
	//delayed:allow the test expects the refusal
	fails(t, func(t testing.TB) { delayedtest.RequireEnqueued(t, q, py("ann"), 1) }, "a *Task has its arguments")

	tasks := delayedtest.Tasks(t, q, welcome)
	if got := tasks[0]; got.Func != "mail:send" || len(got.Args) != 2 || got.Args[1] != "ann" ||
		got.Kwargs["lang"] != "en" {
		t.Errorf("Python task: %+v", got)
	}
	if got := tasks[1].String(); got != `example.com/mail.Welcome(42, "en")` {
		t.Errorf("task by path: %s", got)
	}
	if got := tasks[2].Args; len(got) != 2 || got[0] != int64(1) {
		t.Errorf("task of a known function: %#v", got)
	}
}

func TestTasks(t *testing.T) {
	t.Parallel()
	q := delayedtest.NewQueue(t)
	start := delayedtest.Now(t, q)
	delay(t, q.With(delayed.In(time.Hour), delayed.MaxRetry(3), delayed.TaskID("d1")), digest, 7, "tea")
	delay(t, q, ping)
	tasks := delayedtest.Tasks(t, q, digest)
	if len(tasks) != 2 || tasks[0].State != "pending" || tasks[0].Func != here+"ping" || tasks[0].ID == "" ||
		!tasks[0].Due.IsZero() {
		t.Fatalf("found %+v", tasks)
	}
	got := tasks[1]
	if got.Queue != "test" || got.State != "scheduled" || got.ID != "d1" || !got.Due.Equal(start.Add(time.Hour)) ||
		!got.Enqueued.Equal(start) {
		t.Errorf("found %+v", got)
	}
	if got.MaxRetry == nil || *got.MaxRetry != 3 || got.Retried != 0 || len(got.Args) != 2 || got.Args[0] != 7 ||
		got.Args[1] != "tea" {
		t.Errorf("found %+v", got)
	}
	fails(t, func(t testing.TB) { delayedtest.Tasks(t, q, "digest") }, "expected a function")
}

func TestQueuesOfOneServer(t *testing.T) {
	t.Parallel()
	rdb := delayedtest.NewRedis(t)
	a, b := delayed.NewQueue("a", rdb), delayed.NewQueue("b", rdb.WithPrefix("p:"))
	delay(t, a, ping)
	delay(t, b, welcome, 1, "en")
	delayedtest.RequireEnqueued(t, a, ping)
	delayedtest.RequireEnqueued(t, b, welcome, 1, "en")
	delayedtest.RefuteEnqueued(t, a, welcome, 1, "en")
	delayedtest.Advance(t, a, time.Minute)
	if !delayedtest.Now(t, a).Equal(delayedtest.Now(t, b)) {
		t.Error("two queues of one server have two times")
	}
	other := delayedtest.NewQueue(t)
	delayedtest.RequireEmpty(t, other)
}

// TestOtherRedis looks at a queue on a server that the kit has not started.
func TestOtherRedis(t *testing.T) {
	t.Parallel()
	q := delayedtest.NewQueue(t)
	delay(t, q, ping)
	foreign := otherHandle(t, q)
	delayedtest.RequireEnqueued(t, foreign, ping)
	fails(t, func(t testing.TB) { delayedtest.Drain(t, foreign, ping) }, "is not on a server of this package")
	fails(t, func(t testing.TB) { delayedtest.Now(t, nil) }, "the queue is nil")
	fails(t, func(t testing.TB) { delayedtest.Advance(t, q, -1) }, "time does not go back")
}
