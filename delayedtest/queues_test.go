package delayedtest_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/delayedtest"
)

// TestEqualNamesOnTwoQueues: an id, a lock and a group are those of their queue. What one queue has archived before
// hides nothing of the other.
func TestEqualNamesOnTwoQueues(t *testing.T) {
	t.Parallel()
	rdb := delayedtest.NewRedis(t)
	first, other := delayed.NewQueue("first", rdb), delayed.NewQueue("other", rdb)
	var ran []string
	note := delayed.Func(func(text string) { ran = append(ran, text) }, delayed.Name("note"))
	gather := delayed.Func(func(texts ...string) { ran = append(ran, texts...) }, delayed.Name("gather"))
	broken := delayed.Func(func() error { return errors.New("no") }, delayed.Name("broken"))
	id, lock := delayed.TaskID("x"), delayed.UniqueKey("x", time.Hour)
	for _, q := range []*delayed.Queue{first, other} {
		delay(t, q.With(id), note, "id on "+q.Name())
		delay(t, q.With(lock), note, "lock on "+q.Name())
		delay(t, q.With(delayed.Group("g")), gather, "group on "+q.Name())
		for _, taken := range []delayed.Option{id, lock} {
			if _, err := q.With(taken).Delay(note, "again"); !errors.Is(err, delayed.ErrDuplicate) {
				t.Errorf("%v twice on %s: found %v", taken, q, err)
			}
		}
	}
	both := delayedtest.RunConfig{Queues: []*delayed.Queue{first, other}, Funcs: []any{note, gather, broken}}
	r := delayedtest.Run(t, both)
	want := []string{
		"group on first", "group on other", "id on first", "id on other", "lock on first", "lock on other",
	}
	if slices.Sort(ran); r.Err() != nil || len(r.Calls) != 6 || !slices.Equal(ran, want) {
		t.Errorf("%v, ran %q, expected %q", r.Err(), ran, want)
	}

	for _, q := range []*delayed.Queue{first, other} {
		delay(t, q.With(delayed.TaskID("y"), delayed.MaxRetry(0)), broken)
		r := delayedtest.Run(t, both)
		if len(r.Archived) != 1 || r.Archived[0].Queue != q.Name() || r.Archived[0].ID != "y" || len(r.Calls) != 1 {
			t.Errorf("%s: found %+v", q, r)
		}
	}
}

// TestInlineWithin: tasks that run inline delay others, on their own queue, on another one, later and twice: each runs
// once, within the one that delays it, and what is unique is held as long as it runs.
func TestInlineWithin(t *testing.T) {
	t.Parallel()
	rdb := delayedtest.NewRedis(t)
	first, other := delayed.NewQueue("first", rdb), delayed.NewQueue("other", rdb)
	var lines []string
	say := func(text string) { lines = append(lines, text) }
	leaf := delayed.Func(say, delayed.Name("leaf"))
	branch := delayed.Func(func() {
		say("branch begins")
		delay(t, first, leaf, "leaf of the branch")
		delay(t, first.With(delayed.In(time.Minute)), leaf, "later")
		say("branch ends")
	}, delayed.Name("branch"))
	var root *delayed.Function
	root = delayed.Func(func() {
		say("root begins")
		if _, err := first.With(delayed.Unique(time.Hour)).Delay(root); !errors.Is(err, delayed.ErrDuplicate) {
			t.Errorf("the root within itself: found %v", err)
		}
		delay(t, other, branch)
		if _, err := first.DelayMany(t.Context(), delayed.Call(leaf, "one"), delayed.Call(leaf, "two")); err != nil {
			t.Error(err)
		}
		say("root ends")
	}, delayed.Name("root"))
	delayedtest.Inline(t, first, root, leaf)
	delayedtest.Inline(t, other, branch)
	round := []string{"root begins", "branch begins", "leaf of the branch", "branch ends", "one", "two", "root ends"}
	for range 2 { // its lock is free when it has ended
		lines = nil
		delay(t, first.With(delayed.Unique(time.Hour)), root)
		if !slices.Equal(lines, round) {
			t.Errorf("found %q, expected %q", lines, round)
		}
	}
	delayedtest.RequireCount(t, first, 2, leaf, "later")
	delayedtest.RequireEmpty(t, other)
	lines = nil
	delayedtest.Drain(t, first, leaf)
	if !slices.Equal(lines, []string{"later", "later"}) {
		t.Errorf("found %q", lines)
	}
}
