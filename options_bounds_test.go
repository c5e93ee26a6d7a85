package delayed_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
)

// TestBoundsOfOptions sets each option to its limit, which is allowed, and beyond it, which is not.
func TestBoundsOfOptions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	f := b.fn("f", func(...int) {})
	for _, c := range []struct {
		name        string
		in, outside delayed.Option
	}{
		{"TaskID", delayed.TaskID(strings.Repeat("x", 256)), delayed.TaskID(strings.Repeat("x", 257))},
		{
			"At", delayed.At(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)),
			delayed.At(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)),
		},
		{"In", delayed.In(time.Millisecond), delayed.In(time.Millisecond - 1)},
		{
			"UniqueKey", delayed.UniqueKey(strings.Repeat("x", 510), time.Hour),
			delayed.UniqueKey(strings.Repeat("x", 511), time.Hour),
		},
		{"ttl of Unique", delayed.Unique(time.Millisecond), delayed.Unique(time.Millisecond - 1)},
		{"Group", delayed.Group(strings.Repeat("x", 256)), delayed.Group(strings.Repeat("x", 257))},
		{
			"Backoff", delayed.Backoff(make([]time.Duration, 64)...),
			delayed.Backoff(make([]time.Duration, 65)...),
		},
		{"MaxBackoff", delayed.MaxBackoff(time.Millisecond), delayed.MaxBackoff(0)},
		{"Retention", delayed.Retention(time.Millisecond), delayed.Retention(time.Millisecond - 1)},
	} {
		if _, err := b.q.With(c.in).Delay(f, 1); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := b.q.With(c.outside).Delay(f, 2); !errors.Is(err, delayed.ErrArguments) {
			t.Errorf("%s beyond its bound: %v", c.name, err)
		}
	}
	for name, c := range map[string]struct {
		n, size int
		ok      bool
	}{
		"64 headers": {64, 4, true}, "65 headers": {65, 4, false}, "8,192 bytes": {2, 4096, true},
		"a byte more": {2, 4097, false},
	} {
		q := b.q
		for i := range c.n {
			key := string(rune('A' + i))
			q = q.With(delayed.Header(key, strings.Repeat("x", c.size-len(key))))
		}
		if _, err := q.Delay(f, 3); (err == nil) != c.ok || err != nil && !errors.Is(err, delayed.ErrArguments) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWeightsAtTheirBounds: the highest weight is allowed, and none above.
func TestWeightsAtTheirBounds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for weight, ok := range map[int]bool{-1: false, 0: true, 1: true, 1000: true, 1001: false} {
		if err := b.q.SetWeight(t.Context(), weight); ok != (err == nil) || !ok &&
			!errors.Is(err, delayed.ErrArguments) {
			t.Errorf("weight %d: %v", weight, err)
		}
	}
}

// TestRefusedTaskOfASecondBatch: the error gives the task's position in the whole call, not in its batch.
func TestRefusedTaskOfASecondBatch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	f := b.fn("f", func(...int) {}, delayed.Unique(time.Hour))
	there := b.delay(f, 119)
	tasks := make([]*delayed.Task, 150) // 100 go together
	for i := range tasks {
		tasks[i] = delayed.Call(f, i)
	}
	refs, err := b.q.DelayMany(t.Context(), tasks...)
	var batch *delayed.BatchError
	var taken *delayed.DuplicateError
	if !errors.As(err, &batch) || !errors.As(err, &taken) || taken.ID != there.ID() || batch.Sent != 100 ||
		len(refs) != 100 || !strings.Contains(err.Error(), "task 120:") {
		t.Errorf("found %v, with %d of %d refs", err, len(refs), len(tasks))
	}
}

// TestGroupWithoutAPolicy: by default a group waits for a minute, and for at most a thousand calls.
func TestGroupWithoutAPolicy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	index := b.fn("index", func(...int) {})
	byPath := delayed.NewGoTask("example.com/search.Index", []int{1})
	q := b.q.With(delayed.Group("k"))
	tasks := make([]*delayed.Task, 999)
	for i := range tasks {
		tasks[i] = delayed.Call(index, i)
	}
	for _, step := range []struct {
		tasks     []*delayed.Task
		size      int
		sooner    time.Duration // earliest due time
		later     time.Duration // latest due time
		groupsNow int
	}{
		{tasks, 999, 50 * time.Second, time.Minute, 1},
		{tasks[:1], 1000, -time.Minute, 0, 1},
		{[]*delayed.Task{byPath}, 1, 50 * time.Second, time.Minute, 2},
	} {
		_, err := q.DelayMany(t.Context(), step.tasks...)
		b.Must(err)
		groups, err := b.groups()
		b.Must(err)
		if len(groups) != step.groupsNow {
			t.Fatalf("found %+v", groups)
		}
		g := groups[len(groups)-1] // the groups are in order of their due times
		left := time.Until(g.Due)
		if g.Size != step.size || g.Key != "k" || left < step.sooner || left > step.later+time.Second {
			t.Errorf("found %+v, due in %v, expected %d calls, due in %v to %v", g, left, step.size, step.sooner,
				step.later)
		}
	}
}
