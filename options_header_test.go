package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/wire"
)

// headersOf returns the headers of a message.
func headersOf(m *wire.Message) map[string]string {
	if m.Meta.Extra == nil {
		return nil
	}
	return m.Meta.Extra.Headers
}

func TestHeadersTravel(t *testing.T) {
	b := newBench(t)
	q := b.q.With(delayed.Header("tenant", "a"), delayed.Header("x", "1"), delayed.Header("x", "2"))
	other := q.With(delayed.Header("tenant", "b"), delayed.MaxRetry(1)) // this leaves q unchanged
	b.delayWith(q, plainForTest, 1)
	b.delayWith(other, plainForTest, 1)
	if _, err := other.Enqueue(t.Context(), delayed.NewGoTask("a.b", 1)); err != nil {
		t.Fatal(err)
	}
	b.delay(plainForTest, 1)
	want := []map[string]string{{"tenant": "a", "x": "2"}, {"tenant": "b", "x": "2"}, {"tenant": "b", "x": "2"}, nil}
	for i, m := range b.pending() {
		if got := headersOf(&m); !maps.Equal(got, want[i]) {
			t.Errorf("message %d: expected %q, found %q", i, want[i], got)
		}
		if i == 3 && m.Meta.Extra != nil {
			t.Errorf("a task without headers carries %+v", m.Meta.Extra)
		}
	}
	if s := delayed.Header("a", "b\n").String(); s != `Header("a", "b\n")` {
		t.Errorf("found %s", s)
	}
}

func TestHeadersWithinBounds(t *testing.T) {
	b := newBench(t)
	var many []delayed.Option
	for i := range wire.MaxHeaders + 1 {
		many = append(many, delayed.Header(fmt.Sprint("k", i), ""))
	}
	long := strings.Repeat("v", wire.MaxHeaderBytes)
	for _, c := range []struct {
		opts []delayed.Option
		says string
	}{
		{many, "65 headers, expected at most 64"},
		{[]delayed.Option{delayed.Header("k", long)}, "headers of 8193 bytes, expected at most 8192"},
		{[]delayed.Option{delayed.Header("", "v")}, "not empty"},
		{[]delayed.Option{delayed.Header("\xff", "v")}, "UTF-8"},
		{[]delayed.Option{delayed.Header("k", "\xff")}, "UTF-8"},
	} {
		_, err := b.q.With(c.opts...).Delay(plainForTest, 1)
		if !errors.Is(err, delayed.ErrArguments) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("expected ErrArguments that says %q, found %v", c.says, err)
		}
	}
	b.delayWith(b.q.With(many[1:]...), plainForTest, 1)
	b.delayWith(b.q.With(delayed.Header("k", long[1:])), plainForTest, 1)
	for i, m := range b.pending() { // as a worker reads them
		if n := len(headersOf(&m)); n != []int{wire.MaxHeaders, 1}[i] {
			t.Errorf("message %d has %d headers", i, n)
		}
	}
}

type traceKey struct{}

func TestInjectAddsHeadersOfTheContext(t *testing.T) {
	b := newBench(t)
	calls := 0
	q, err := delayed.OpenQueue(b.rdb,
		delayed.QueueConfig{Name: b.Name, Inject: func(ctx context.Context) map[string]string {
			calls++
			trace, _ := ctx.Value(traceKey{}).(string)
			if trace == "" {
				return nil
			}
			return map[string]string{"trace": trace, "x": "injected"}
		}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithValue(t.Context(), traceKey{}, "t1")
	if _, err := q.DelayContext(ctx, plainForTest, 1); err != nil {
		t.Fatal(err)
	}
	ref, err := q.With(delayed.Header("x", "given")).Enqueue(ctx, delayed.Call(plainForTest, 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.DelayMany(ctx, delayed.Call(plainForTest, 1), delayed.Call(plainForTest, 2),
		delayed.NewPyTask("m:f", nil, nil)); err != nil {
		t.Fatal(err)
	}
	b.delayWith(q, plainForTest, 1) // a context without values
	want := []map[string]string{
		{"trace": "t1", "x": "injected"},
		{"trace": "t1", "x": "given"},
		{"trace": "t1", "x": "injected"},
		{"trace": "t1", "x": "injected"},
		{"trace": "t1", "x": "injected"},
		nil,
	}
	for i, m := range b.pending() {
		if got := headersOf(&m); !maps.Equal(got, want[i]) {
			t.Errorf("message %d: expected %q, found %q", i, want[i], got)
		}
	}
	if calls != 4 {
		t.Errorf("Inject was called %d times, expected 4", calls)
	}
	if ref.Queue() != b.Name {
		t.Errorf("ref %v", ref)
	}
	big := context.WithValue(t.Context(), traceKey{}, strings.Repeat("t", wire.MaxHeaderBytes))
	for name, try := range map[string]func() error{
		"DelayContext": func() error { _, err := q.DelayContext(big, plainForTest, 1); return err },
		"Enqueue":      func() error { _, err := q.Enqueue(big, delayed.Call(plainForTest, 1)); return err },
		"DelayMany":    func() error { _, err := q.DelayMany(big, delayed.Call(plainForTest, 1)); return err },
	} {
		if err := try(); !errors.Is(err, delayed.ErrArguments) || !strings.Contains(err.Error(), "Inject") {
			t.Errorf("%s: expected ErrArguments that names Inject, found %v", name, err)
		}
	}
}

// TestHeadersOfPythonTasks: where headers cannot be sent, given ones are refused and injected ones left out.
func TestHeadersOfPythonTasks(t *testing.T) {
	b := newBench(t)
	inject := func(context.Context) map[string]string { return map[string]string{"trace": "t1"} }
	plain, err := delayed.OpenQueue(b.rdb, delayed.QueueConfig{Name: b.Name, Legacy: true, Inject: inject})
	if err != nil {
		t.Fatal(err)
	}
	task := delayed.NewPyTask("m:f", nil, nil)
	if _, err := plain.Enqueue(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	if m := b.pending()[0]; m.Kind != wire.Py {
		t.Errorf("expected a plain Python task, found %+v", m)
	}
	if _, err := plain.With(delayed.Header("k", "v")).Enqueue(t.Context(), task); !errors.Is(err,
		delayed.ErrArguments) {
		t.Errorf("expected ErrArguments, found %v", err)
	}
	extended, err := delayed.OpenQueue(b.rdb, delayed.QueueConfig{Name: b.Name + "x", Inject: inject})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := extended.With(delayed.Header("k", "v")).Enqueue(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	message, err := redis.String(b.Conn.Do("LINDEX", b.Name+"x", 0))
	if err != nil {
		t.Fatal(err)
	}
	m, err := parseForTest(message)
	if want := map[string]string{"k": "v", "trace": "t1"}; err != nil || !maps.Equal(headersOf(&m), want) {
		t.Errorf("expected %q, found %+v, %v", want, m.Meta.Extra, err)
	}
}

// TestInjectOnLegacyQueue: an injected header makes the message an extended one, which go-delayed's workers read as
// well.
func TestInjectOnLegacyQueue(t *testing.T) {
	b := newBench(t)
	found := map[string]string{"trace": "t1"}
	q, err := delayed.OpenQueue(b.rdb,
		delayed.QueueConfig{
			Name: b.Name, Legacy: true,
			Inject: func(context.Context) map[string]string { return found },
		})
	if err != nil {
		t.Fatal(err)
	}
	b.delayWith(q, plainForTest, 1)
	found = nil
	b.delayWith(q, plainForTest, 1)
	messages := b.pending()
	if messages[0].Kind != wire.GoExtended || headersOf(&messages[0])["trace"] != "t1" ||
		messages[1].Kind != wire.GoPlain {
		t.Errorf("found %+v", messages)
	}
}
