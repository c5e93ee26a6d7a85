package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/godelayed/delayed"
)

// aroundQueue opens the queue of b with Around, and Inject that takes its header from the context.
func (b *bench) aroundQueue(
	around func(context.Context, []*delayed.Task, func(context.Context) ([]*delayed.Ref, error)),
) *delayed.Queue {
	b.T.Helper()
	q, err := delayed.OpenQueue(b.rdb, delayed.QueueConfig{
		Name: b.Name, Around: around,
		Inject: func(ctx context.Context) map[string]string {
			trace, _ := ctx.Value(traceKey{}).(string)
			return map[string]string{"trace": trace}
		},
	})
	b.Must(err)
	return q
}

// TestAround: it learns the tasks and how each call has gone, and gives Inject a context.
func TestAround(t *testing.T) {
	b := newBench(t)
	var seen []string
	q := b.aroundQueue(func(
		ctx context.Context, tasks []*delayed.Task, enqueue func(context.Context) ([]*delayed.Ref, error),
	) {
		refs, err := enqueue(context.WithValue(ctx, traceKey{}, fmt.Sprint("call ", len(seen))))
		var names []string
		for i, t := range tasks {
			names = append(names, t.Path()[strings.LastIndexByte(t.Path(), '.')+1:])
			if i < len(refs) && refs[i].ID() == "" {
				b.T.Errorf("%v has no id", t)
			}
		}
		seen = append(seen, fmt.Sprint(names, " ", len(refs), err == nil, errors.Is(err, delayed.ErrDuplicate)))
		clear(refs) // is Around's own
	})
	first, err := q.DelayContext(t.Context(), plainForTest, 1)
	b.Must(err)
	_, err = q.With(delayed.TaskID("again")).Delay(plainForTest, 2)
	b.Must(err)
	_, err = q.With(delayed.TaskID("again")).Enqueue(t.Context(), delayed.Call(plainForTest, 3))
	if duplicate := new(delayed.DuplicateError); !errors.As(err, &duplicate) || duplicate.ID != "again" {
		t.Errorf("the second task with an id: %v", err)
	}
	refs, err := q.DelayMany(t.Context(), delayed.Call(plainForTest, 4), delayed.NewPyTask("m:f.g", nil, nil))
	b.Must(err)
	if len(refs) != 2 || refs[0] == nil || refs[1] == nil {
		t.Errorf("DelayMany returned %v", refs)
	}
	for name, try := range map[string]func() error{
		"Delay": func() error { _, err := q.Delay(plainForTest, "x"); return err },
		"DelayMany": func() error {
			_, err := q.DelayMany(t.Context(), delayed.Call(plainForTest, 1), delayed.Call(plainForTest, "x"))
			return err
		},
	} {
		if err := try(); !errors.Is(err, delayed.ErrArguments) {
			t.Errorf("%s with wrong arguments: %v", name, err)
		}
	}
	want := []string{
		"[plainForTest] 1 true false", "[plainForTest] 1 true false", "[plainForTest] 0 false true",
		"[plainForTest g] 2 true false",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("Around saw\n%q, expected\n%q", seen, want)
	}
	pending := b.pending()
	if pending[0].Meta.ID != first.ID() {
		t.Errorf("the first task is %q, its Ref %q", pending[0].Meta.ID, first.ID())
	}
	for i, call := range []int{0, 1, 3, 3} {
		if got, want := headersOf(&pending[i]), fmt.Sprint("call ", call); got["trace"] != want {
			t.Errorf("message %d: expected the header %q, found %q", i, want, got)
		}
	}
	if len(pending) != 4 {
		t.Errorf("%d tasks are pending", len(pending))
	}
}

// TestAroundKeepsTasks: what Around has got is not changed by later calls, although they use memory again.
func TestAroundKeepsTasks(t *testing.T) {
	b := newBench(t)
	var kept []*delayed.Task
	q := b.aroundQueue(func(
		ctx context.Context, tasks []*delayed.Task, enqueue func(context.Context) ([]*delayed.Ref, error),
	) {
		kept = append(kept, tasks...)
		_, _ = enqueue(ctx)
	})
	for i := range 20 {
		b.delayWith(q, plainForTest, i)
	}
	_, err := b.q.DelayMany(t.Context(), kept...)
	b.Must(err)
	pending := b.pending()
	for i := range 20 {
		if a, b := pending[i].Payload, pending[20+i].Payload; string(a) != string(b) {
			t.Errorf("task %d had the arguments %x, and has %x", i, a, b)
		}
	}
}

// TestAroundThatDoesNotEnqueueOnce: the call is an error, and nothing is enqueued twice.
func TestAroundThatDoesNotEnqueueOnce(t *testing.T) {
	b := newBench(t)
	var second error
	for name, test := range map[string]struct {
		around func(context.Context, func(context.Context) ([]*delayed.Ref, error))
		says   string
	}{
		"never": {
			func(context.Context, func(context.Context) ([]*delayed.Ref, error)) {},
			"QueueConfig.Around did not enqueue",
		},
		"without a context": {
			func(_ context.Context, enqueue func(context.Context) ([]*delayed.Ref, error)) {
				_, _ = enqueue(nil) //nolint:contextcheck // what the test is about
			}, "context is nil",
		},
		"twice": {
			func(ctx context.Context, enqueue func(context.Context) ([]*delayed.Ref, error)) {
				_, _ = enqueue(ctx)
				_, second = enqueue(ctx)
			}, "",
		},
	} {
		q := b.aroundQueue(func(
			ctx context.Context, _ []*delayed.Task, enqueue func(context.Context) ([]*delayed.Ref, error),
		) {
			test.around(ctx, enqueue)
		})
		_, err := q.Delay(plainForTest, 1)
		_, many := q.DelayMany(t.Context(), delayed.Call(plainForTest, 1))
		if test.says == "" {
			b.Must(err)
			b.Must(many)
			continue
		}
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: expected %q, found %v", name, test.says, err)
		}
		if batch := new(delayed.BatchError); !errors.As(many, &batch) || batch.Sent != 0 {
			t.Errorf("%s: DelayMany: expected a *BatchError, found %v", name, many)
		}
	}
	if second == nil || !strings.Contains(second.Error(), "a second time") {
		t.Errorf("the second call of enqueue: %v", second)
	}
	if n := len(b.pending()); n != 2 {
		t.Errorf("%d tasks are pending, expected 2", n)
	}
}
