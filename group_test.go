package delayed_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/group"
	"github.com/godelayed/delayed/internal/wire"
)

func TestGroupIsRefused(t *testing.T) {
	q := offline(t)
	index := delayed.Func(func(...int) {}, delayed.Name("refused.index"))
	for _, c := range []struct {
		name string
		q    *delayed.Queue
		task *delayed.Task
		is   error
		want string
	}{
		{"empty key", q.With(delayed.Group("")), delayed.Call(index, 1), delayed.ErrArguments, "key of 0 bytes"},
		{
			"long key", q.With(delayed.Group(strings.Repeat("k", 257))), delayed.Call(index, 1), delayed.ErrArguments,
			"key of 257 bytes",
		},
		{
			"key that is not UTF-8", q.With(delayed.Group("\xff")), delayed.Call(index, 1), delayed.ErrArguments,
			"in UTF-8",
		},
		{
			"no list", q.With(delayed.Group("k")),
			delayed.Call(delayed.Func(func(int) {}, delayed.Name("refused.one")), 1), delayed.ErrFunction,
			"variadic function or one whose last parameter is a slice",
		},
		{
			"no parameters", q.With(delayed.Group("k")),
			delayed.Call(delayed.Func(func() {}, delayed.Name("refused.none"))), delayed.ErrFunction, "variadic",
		},
		{
			"bytes", q.With(delayed.Group("k")),
			delayed.Call(delayed.Func(func([]byte) {}, delayed.Name("refused.bytes")), []byte{1}), delayed.ErrFunction,
			"other than []byte",
		},
		{
			"array", q.With(delayed.Group("k")),
			delayed.Call(delayed.Func(func([2]int) {}, delayed.Name("refused.array")), [2]int{1}), delayed.ErrFunction,
			"variadic",
		},
		{
			"slice, but not last", q.With(delayed.Group("k")),
			delayed.Call(delayed.Func(func([]int, int) {}, delayed.Name("refused.first")), []int{1}, 2),
			delayed.ErrFunction, "variadic",
		},
		{
			"by path without a slice", q.With(delayed.Group("k")), delayed.NewGoTask("a.b", 1, 2), delayed.ErrArguments,
			"slice as the last argument of a task given by path, found integer",
		},
		{
			"by path without arguments", q.With(delayed.Group("k")), delayed.NewGoTask("a.b"), delayed.ErrArguments,
			"found no argument",
		},
		{
			"Python", q.With(delayed.Group("k")), delayed.NewPyTask("a:b", nil, nil), delayed.ErrArguments,
			"found a Python task",
		},
		{
			"TaskID", q.With(delayed.TaskID("x"), delayed.Group("k")), delayed.Call(index, 1), delayed.ErrArguments,
			"no TaskID",
		},
		{
			"Unique", q.With(delayed.Unique(time.Hour), delayed.Group("k")), delayed.Call(index, 1),
			delayed.ErrArguments, "holds a lock",
		},
		{
			"Debounce", q.With(delayed.Debounce(time.Hour), delayed.Group("k")), delayed.Call(index, 1),
			delayed.ErrArguments, "holds a lock",
		},
		{
			"Front", q.With(delayed.Front(), delayed.Group("k")), delayed.Call(index, 1), delayed.ErrArguments,
			"no Front",
		},
	} {
		if _, err := c.q.Enqueue(t.Context(), c.task); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %v with %q", c.name, err, c.is, c.want)
		}
		if _, err := c.q.DelayMany(t.Context(), c.task); !errors.Is(err, c.is) {
			t.Errorf("%s, one of many: %v, expected %v", c.name, err, c.is)
		}
	}
	locked := delayed.Func(func(...int) {}, delayed.Name("refused.locked"), delayed.Unique(time.Hour))
	if _, err := q.With(delayed.Group("k")).Delay(locked, 1); !errors.Is(err, delayed.ErrArguments) ||
		!strings.Contains(err.Error(), "holds a lock") {
		t.Errorf("with a lock: %v", err)
	}
}

func TestGatherPolicies(t *testing.T) {
	for _, c := range []struct {
		policy delayed.GatherPolicy
		text   string
		want   wire.Gather
	}{
		{delayed.GatherPolicy{}, "Gather(GatherPolicy{})", wire.Gather{Grace: 60_000, MaxSize: 1000}},
		{
			delayed.GatherPolicy{Grace: time.Second, MaxDelay: time.Hour, MaxSize: 7},
			"Gather(GatherPolicy{Grace: 1s, MaxDelay: 1h0m0s, MaxSize: 7})",
			wire.Gather{Grace: 1000, MaxDelay: 3_600_000, MaxSize: 7},
		},
		{
			delayed.GatherPolicy{Grace: time.Millisecond, MaxDelay: 1999 * time.Microsecond},
			"Gather(GatherPolicy{Grace: 1ms, MaxDelay: 1.999ms})",
			wire.Gather{Grace: 1, MaxDelay: 1, MaxSize: 1000},
		},
		{
			delayed.GatherPolicy{MaxSize: 1 << 30},
			"Gather(GatherPolicy{MaxSize: 1073741824})",
			wire.Gather{Grace: 60_000, MaxSize: 5_000},
		},
	} {
		if text := delayed.Gather(c.policy).String(); text != c.text {
			t.Errorf("%s, expected %s", text, c.text)
		}
		q := offline(t).With(delayed.Group("k"))
		byCall := messageOf(t, q.With(delayed.Gather(c.policy)),
			delayed.Call(delayed.Func(func([]int) {}, delayed.Name("f"),
				delayed.Gather(delayed.GatherPolicy{MaxSize: 5})), []int{1}))
		byFunc := messageOf(t, q,
			delayed.Call(delayed.Func(func([]int) {}, delayed.Name("f"), delayed.Gather(c.policy)), []int{1}))
		for _, raw := range [][]byte{byCall, byFunc} {
			if m, err := group.NewMember(raw); err != nil || m.How != c.want {
				t.Errorf("%s: %+v, %v, expected %+v", c.text, m.How, err, c.want)
			}
		}
	}
	if text := delayed.Group("a\"b").String(); text != `Group("a\"b")` {
		t.Error(text)
	}
}
