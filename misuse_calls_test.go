package delayed_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

func misusedTasks(rdb *delayed.Redis) (all []misuse) {
	q := delayed.NewQueue("misused", rdb)
	ctx := context.Background()
	enqueue := func(t *delayed.Task) func() error {
		return func() error { _, err := q.Enqueue(ctx, t); return err }
	}
	for name, do := range map[string]func(*delayed.Task){
		"Path": func(t *delayed.Task) { t.Path() }, "ID": func(t *delayed.Task) { t.ID() },
		"Queue":   func(t *delayed.Task) { t.Queue() },
		"Attempt": func(t *delayed.Task) { t.Attempt() }, "MaxRetry": func(t *delayed.Task) { t.MaxRetry() },
		"Deaths": func(t *delayed.Task) { t.Deaths() }, "EnqueuedAt": func(t *delayed.Task) { t.EnqueuedAt() },
		"Header": func(t *delayed.Task) { t.Header("k") }, "Headers": func(t *delayed.Task) { t.Headers() },
		"IdempotencyKey": func(t *delayed.Task) { t.IdempotencyKey() },
	} {
		all = append(all, misuse{
			name + " outside of a handler", none(func() { do(delayed.TaskFromContext(ctx)) }),
			"the *Task is nil",
		})
	}
	return append(all,
		misuse{"ID without a context", none(func() { delayed.TaskFromContext(noContext).ID() }), "the *Task is nil"},
		misuse{"Enqueue(nil)", enqueue(nil), "the *Task is nil or zero"},
		misuse{"Enqueue(&Task{})", enqueue(&delayed.Task{}), "the *Task is nil or zero"},
		misuse{
			"DelayMany with nil",
			func() error { _, err := q.DelayMany(ctx, delayed.Call(wrongOne, 1), nil); return err }, "task 2: ",
		},
		misuse{
			"DelayMany with a zero Task", func() error { _, err := q.DelayMany(ctx, &delayed.Task{}); return err },
			"task 1: ",
		},
		misuse{"DelayMany with a wrong call", func() error {
			_, err := q.DelayMany(ctx, delayed.Call(wrongOne, 1), delayed.Call(wrongOne, "x"))
			return err
		}, "task 2: delayed: "},
		misuse{"NewGoTask without a path", enqueue(delayed.NewGoTask("")), "the path is empty"},
		misuse{"NewGoTask of a Python path", enqueue(delayed.NewGoTask("mail:send")), "use NewPyTask"},
		misuse{"NewGoTask of a long path", enqueue(delayed.NewGoTask(strings.Repeat("p", 513))), "at most 512"},
		misuse{"NewGoTask of bytes", enqueue(delayed.NewGoTask("\xff")), "not UTF-8"},
		misuse{"NewGoTask with a channel", enqueue(delayed.NewGoTask("p.f", make(chan int))), "argument 1: "},
		misuse{
			"NewGoTask with a context", enqueue(delayed.NewGoTask("p.f", 1, ctx)),
			"argument 2: expected a value, found a context.Context",
		},
		misuse{
			"NewGoTask with an option", enqueue(delayed.NewGoTask("p.f", 1, delayed.In(time.Hour))),
			"found the option In, which is no argument",
		},
		misuse{"NewPyTask without a path", enqueue(delayed.NewPyTask("", nil, nil)), "the path is empty"},
		misuse{
			"NewPyTask of a Go path", enqueue(delayed.NewPyTask("example.com/app/mail.Welcome", nil, nil)),
			"module:function",
		},
		misuse{"NewPyTask of half a path", enqueue(delayed.NewPyTask("mail:", nil, nil)), "module:function"},
		misuse{
			"NewPyTask with an option", enqueue(delayed.NewPyTask("m:f", []any{delayed.MaxRetry(1)}, nil)),
			"found the option MaxRetry",
		},
		misuse{
			"NewPyTask with a named option",
			enqueue(delayed.NewPyTask("m:f", nil, map[string]any{"when": delayed.In(time.Hour)})), "argument when: ",
		},
		misuse{
			"NewPyTask with a channel", enqueue(delayed.NewPyTask("m:f", []any{make(chan int)}, nil)),
			"cannot travel",
		},
		misuse{
			"Progress outside of a handler", func() error { return delayed.Progress(ctx, 1, 2, "") },
			"outside of a handler",
		},
		misuse{
			"Progress without a context", func() error { return delayed.Progress(noContext, 1, 2, "") },
			"outside of a handler",
		},
	)
}

func misusedOptions(t *testing.T, rdb *delayed.Redis) (all []misuse) {
	t.Helper()
	q := delayed.NewQueue(redistest.Name(t), rdb)
	for _, o := range []struct {
		option delayed.Option
		want   string
	}{
		{delayed.In(60_000), "option In(60µs): expected at least 1ms, or a unit"},
		{delayed.At(time.Time{}), "expected a time that is not zero"},
		{delayed.At(time.Unix(1<<50, 0)), "up to the year 9999"},
		{delayed.Retention(60_000), "option Retention(60µs): expected at least 1ms, or a unit"},
		{delayed.KeepResult(3600), "option KeepResult(3.6µs): expected at least 1ms"},
		{delayed.Timeout(30), "option Timeout(30ns): expected at least 1ms"},
		{delayed.Timeout(-time.Second), "expected a positive duration, or 0 for no bound"},
		{delayed.TTL(5), "option TTL(5ns): expected at least 1ms"},
		{delayed.TTL(0), "expected a positive duration"},
		{delayed.TTL(-time.Hour), "expected a positive duration"},
		{delayed.Deadline(time.Time{}), "expected a time after 1970"},
		{delayed.Deadline(time.Unix(1<<55, 0)), "up to the year 9999"},
		{delayed.RetryUntil(time.Time{}), "expected a time after 1970"},
		{delayed.RetryUntil(time.Unix(-1, 0)), "expected a time after 1970"},
		{delayed.Backoff(), "expected 1 to 64 delays, found 0"},
		{delayed.Backoff(make([]time.Duration, 65)...), "expected 1 to 64 delays, found 65"},
		{delayed.Backoff(time.Second, -1), "found -1ns as number 2"},
		{delayed.Backoff(5, 10), "found 5ns as number 1"},
		{delayed.MaxBackoff(0), "expected a positive duration"},
		{delayed.MaxBackoff(300), "expected at least 1ms"},
		{delayed.Debounce(0), "expected a positive duration"},
		{delayed.Debounce(60), "option Debounce(60ns): expected at least 1ms"},
		{delayed.Unique(0), "expected at least 1ms"},
		{delayed.Unique(3600), "a number without a unit counts nanoseconds"},
		{delayed.Unique(-time.Hour), "expected at least 1ms"},
		{delayed.UniqueKey("", time.Hour), "UniqueKey of 0 bytes"},
		{delayed.UniqueKey(strings.Repeat("k", 511), time.Hour), "UniqueKey of 511 bytes"},
		{delayed.UniqueKey("\xff", time.Hour), "in UTF-8"},
		{delayed.UniqueKey("k", 60), "expected at least 1ms"},
		{delayed.UntilStart(), "UntilStart without a lock"},
		{delayed.OnConflict(delayed.Skip), "without a lock"},
		{delayed.OnConflict(7), "expected Fail, Skip or Replace"},
		{delayed.TaskID(""), "TaskID of 0 bytes"},
		{delayed.TaskID(strings.Repeat("i", 257)), "TaskID of 257 bytes"},
		{delayed.TaskID("\xff"), "in UTF-8"},
		{delayed.Header("", "v"), "a key that is not empty"},
		{delayed.Header("\xff", "v"), "in UTF-8"},
		{delayed.Header("k", "\xff"), "in UTF-8"},
		{delayed.Header("k", strings.Repeat("v", 9000)), "expected at most 8192"},
		{delayed.Group(""), "Group with a key of 0 bytes"},
		{delayed.Group(strings.Repeat("g", 257)), "Group with a key of 257 bytes"},
		{delayed.Group("g"), "variadic function"},
		{delayed.Gather(delayed.GatherPolicy{Grace: 60}), "durations of at least 1ms"},
		{delayed.Gather(delayed.GatherPolicy{MaxDelay: 60}), "durations of at least 1ms"},
		{delayed.Gather(delayed.GatherPolicy{Grace: -1}), "no negative duration"},
		{delayed.Gather(delayed.GatherPolicy{MaxSize: -1}), "no negative MaxSize"},
		{nil, "option 1 is nil"},
	} {
		name := "nil option"
		if o.option != nil {
			name = "option " + o.option.String()
		}
		all = append(all, misuse{
			name, func() error { _, err := q.With(o.option).Delay(wrongOne, 1); return err },
			o.want,
		})
		if d, ok := o.option.(delayed.TaskOption); ok && d.String() != "OnConflict(Skip)" {
			all = append(all, misuse{
				"default " + name,
				func() error { _, err := q.Delay(delayed.Func(wrongOne, d), 1); return err }, o.want,
			})
		}
	}
	with := func(opts ...delayed.Option) func() error {
		return func() error { _, err := q.With(opts...).Delay(wrongOne, 1); return err }
	}
	return append(all,
		misuse{"Front with In", with(delayed.Front(), delayed.In(time.Hour)), "Front with In"},
		misuse{
			"Front with Debounce", with(delayed.Front(), delayed.Debounce(time.Hour)),
			"Front with In, At or Debounce",
		},
		misuse{
			"In as long as the TTL", with(delayed.In(time.Hour), delayed.TTL(time.Hour)),
			"expected a TTL that is longer than the delay",
		},
		misuse{
			"At after the TTL", with(delayed.At(time.Now().Add(time.Hour)), delayed.TTL(time.Minute)),
			"expected a TTL that is longer",
		},
		misuse{
			"Debounce past the deadline", with(delayed.Debounce(time.Hour), delayed.Deadline(time.Now())),
			"expected a deadline after the task is due",
		},
		misuse{"At past a function's TTL", func() error {
			_, err := q.With(delayed.In(time.Hour)).Delay(delayed.Func(wrongOne, delayed.TTL(time.Minute)), 1)
			return err
		}, "found one that ends 59m0s before"},
		misuse{
			"TaskID that is replaced", with(delayed.TaskID("x"), delayed.OnConflict(delayed.Replace)),
			"cannot replace one of its own id",
		},
		misuse{"a wrong option before a right one", with(delayed.TTL(0), delayed.TTL(time.Hour)), "option TTL(0s)"},
		misuse{"one TaskID for two", func() error {
			_, err := q.With(delayed.TaskID("x")).DelayMany(t.Context(), delayed.Call(wrongOne, 1),
				delayed.Call(wrongOne, 2))
			return err
		}, "an id names one task"},
		misuse{"option of a plain Python task", func() error {
			legacy, err := delayed.OpenQueue(rdb, delayed.QueueConfig{Name: redistest.Name(t), Legacy: true})
			if err != nil {
				return fmt.Errorf("legacy queue: %w", err)
			}
			_, err = legacy.With(delayed.TTL(time.Hour)).Enqueue(t.Context(), delayed.NewPyTask("m:f", nil, nil))
			return err
		}, "Python"},
	)
}

func misusedFunctions(t *testing.T, rdb *delayed.Redis) (all []misuse) {
	t.Helper()
	q := delayed.NewQueue(redistest.Name(t), rdb)
	n := 0
	for name, f := range map[string]struct {
		fn   any
		want string
	}{
		"nil":                     {nil, "function cannot be delayed"},
		"a nil function":          {(func())(nil), "function cannot be delayed"},
		"a number":                {1, "function cannot be delayed"},
		"a path":                  {"example.com/app.F", "NewGoTask"},
		"a context":               {t.Context(), "DelayContext"},
		"a closure":               {func() { n++ }, "wrap it with Func and Name"},
		"a call":                  {delayed.Call(wrongOne, 1), "function cannot be delayed"},
		"an interface's method":   {wrongMailer.Send, "the method of the type that implements it"},
		"two results":             {wrongThree, "no result, error, T or (T, error)"},
		"a late context":          {wrongLate, "move it to the front"},
		"a nil Function":          {(*delayed.Function)(nil), "call Func"},
		"a zero Function":         {&delayed.Function{}, "call Func"},
		"Func(nil)":               {delayed.Func(nil), "function cannot be delayed"},
		"Func of a Function":      {delayed.Func(delayed.Func(wrongOne)), "all options in one call"},
		"Func with a nil option":  {delayed.Func(wrongOne, nil), "leave it out"},
		"an empty Name":           {delayed.Func(wrongOne, delayed.Name("")), "choose another Name"},
		"a Name with a colon":     {delayed.Func(wrongOne, delayed.Name("a:b")), "choose another Name"},
		"a Name of control bytes": {delayed.Func(wrongOne, delayed.Name("a\nb")), "choose another Name"},
		"a long Name": {
			delayed.Func(wrongOne, delayed.Name(strings.Repeat("n", 513))),
			"choose another Name",
		},
		"an empty Alias":   {delayed.Func(wrongOne, delayed.Alias("")), "choose another Alias"},
		"an Alias twice":   {delayed.Func(wrongOne, delayed.Alias("a.b", "a.b")), "a.b twice"},
		"Optional(-1)":     {delayed.Func(wrongOne, delayed.Optional(-1)), "Optional of 0 to 1"},
		"Optional(2)":      {delayed.Func(wrongOne, delayed.Optional(2)), "Optional of 0 to 1"},
		"BackoffFunc(nil)": {delayed.Func(wrongOne, delayed.BackoffFunc(nil)), "BackoffFunc"},
		"Backoff and BackoffFunc": {delayed.Func(wrongOne, delayed.Backoff(time.Second),
			delayed.BackoffFunc(func(int, error) time.Duration { return 0 })), "choose one"},
		"Middleware(nil)":        {delayed.Func(wrongOne, delayed.Middleware(nil)), "middleware 1 is nil"},
		"a channel as parameter": {func(chan int) {}, "function cannot be delayed"},
		"a large array as parameter": {
			delayed.Func(func([1 << 20]byte) {}, delayed.Name("x.large")),
			"take a pointer or a slice",
		},
		"an interface as a parameter": {
			delayed.Func(func(io.Reader) {}, delayed.Name("x.reader")),
			"parameter 1: io.Reader cannot travel",
		},
	} {
		all = append(all, misuse{"Delay of " + name, func() error { _, err := q.Delay(f.fn); return err }, f.want})
	}
	return all
}

func misusedArguments(t *testing.T, rdb *delayed.Redis) (all []misuse) {
	t.Helper()
	q := delayed.NewQueue(redistest.Name(t), rdb)
	ref, err := q.With(delayed.In(time.Hour)).Delay(wrongOne, 1)
	if err != nil {
		t.Fatal(err)
	}
	cyclic := map[string]any{}
	cyclic["self"] = cyclic
	const refused = ", which is no argument: give it to Queue.With"
	for name, c := range map[string]struct {
		fn   any
		args []any
		want string
	}{
		"an option for any": {
			wrongAny,
			[]any{"x", delayed.In(time.Hour)},
			"argument 2: expected interface {}, found the option In" + refused,
		},
		"a secret option for any": {
			wrongAny,
			[]any{delayed.Header("k", "hunter2")},
			"found the option Header" + refused,
		},
		"an option for a number": {wrongOne, []any{delayed.In(time.Hour)}, "found the option In" + refused},
		"an option for a text":   {wrongText, []any{delayed.TaskID("x")}, "found the option TaskID" + refused},
		"an option too many": {
			wrongOne,
			[]any{1, delayed.MaxRetry(3)},
			"argument 2: expected no argument, found the option MaxRetry" + refused,
		},
		"an option in the tail": {
			wrongList,
			[]any{"x", 1, delayed.In(time.Hour)},
			"argument 3: expected int64, found the option In" + refused,
		},
		"options as a list": {
			wrongList,
			[]any{"x", delayed.MaxRetry(1)},
			"found the option MaxRetry" + refused,
		},
		"an option of Func": {
			wrongAny, []any{delayed.Name("x")}, "the option Name, which is no argument: give it to Func",
		},
		"a context":                 {wrongOne, []any{t.Context(), 1}, "DelayContext"},
		"a context for any":         {wrongAny, []any{t.Context()}, "DelayContext"},
		"a Ref":                     {wrongAny, []any{ref}, "pass its ID()"},
		"a Queue":                   {wrongAny, []any{q}, "a *Queue, which cannot travel"},
		"a handle":                  {wrongAny, []any{rdb}, "a *Redis, which cannot travel"},
		"a Task":                    {wrongAny, []any{delayed.Call(wrongOne, 1)}, "a *Task, which cannot travel"},
		"none":                      {wrongOne, nil, "expected 1 argument (int), found 0"},
		"too many":                  {wrongOne, []any{1, 2}, "expected 1 argument (int), found 2"},
		"one for none":              {wrongNothing, []any{1}, "expected no arguments, found 1"},
		"too few before a tail":     {wrongList, nil, "expected at least 1 argument"},
		"a text for a number":       {wrongOne, []any{"x"}, "argument 1: expected int, found string"},
		"a fraction for a number":   {wrongOne, []any{1.5}, "argument 1: expected int, found float64 1.5"},
		"a number beyond int":       {wrongOne, []any{uint64(math.MaxUint64)}, "argument 1: expected int"},
		"a number for a text":       {wrongText, []any{65}, "argument 1: expected string"},
		"bytes for a text":          {wrongText, []any{[]byte("x")}, "argument 1: expected string"},
		"nil for a number":          {wrongOne, []any{nil}, "argument 1: expected int, found nil"},
		"nil in the tail":           {wrongList, []any{"x", 1, nil}, "argument 3: expected int64, found nil"},
		"a large number for floats": {wrongFloat, []any{int64(math.MaxInt64)}, "argument 1: expected float32"},
		"a text that is not UTF-8":  {wrongText, []any{"\xff"}, "UTF-8"},
		"a channel":                 {wrongAny, []any{make(chan int)}, "argument 1"},
		"a function":                {wrongAny, []any{wrongOne}, "argument 1"},
		"a cyclic map":              {wrongTable, []any{cyclic}, "argument 1"},
		"too much":                  {wrongText, []any{strings.Repeat("x", 2<<20)}, "delayed: "},
	} {
		all = append(all, misuse{
			"Delay with " + name, func() error { _, err := q.Delay(c.fn, c.args...); return err },
			c.want,
		})
	}
	return all
}
