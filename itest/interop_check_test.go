//go:build unix

package itest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// checkedByPython are calls of a queue with check=True; it prints what becomes of each.
const checkedByPython = `
import sys, godelayed, redis
q = godelayed.Queue(sys.argv[2], redis.Redis.from_url(sys.argv[1]), check=True)
for path, args in (
    ('shop.Place', ({'ID': 7, 'Lines': [{'Article': 'hat', 'Price': 2.5}]}, 'ann', 'bob')),
    ('shop.Place', ({'ID': -7},)),
    ('shop.Place', ({'Id': 7},)),
    ('shop.Place', ()),
    ('shop.Plaice', ({},)),
):
    try:
        q.delay(path, *args)
        print('enqueued')
    except godelayed.ArgumentsError as e:
        print(e)
`

// TestChecksAcrossLanguages: producers of both languages hear of calls that workers of the other one do not take.
func TestChecksAcrossLanguages(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	queue := redistest.Name(t)
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	q, err := delayed.OpenQueue(queue, rdb, delayed.QueueConfig{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	type line struct {
		Article string
		Price   float64
	}
	type order struct {
		ID    uint32
		Lines []line
	}
	log := logrus.New()
	log.SetOutput(t.Output())
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{Queues: delayed.Strict{queue}, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan order, 1)
	place := delayed.Func(func(o order, to ...string) { ran <- o }, delayed.Name("shop.Place"))
	if err := w.Register(place); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	conn := server.Dial(t)
	published := func(id string) bool {
		n, err := conn.Do("HEXISTS", queue+"_functions", id)
		return err == nil && n == int64(1)
	}
	waitFor(t, "the functions of Go", func() bool { return published(w.ID()) })

	lines := runPython(t, "-c", checkedByPython, server.URL(), queue)
	for i, want := range []string{
		"enqueued", "expected uint32 at .ID, as in shop.Place(itest_test.order, ...string), found the number -7",
		"expected fields of itest_test.order: ID, Lines, as in shop.Place", "found 0", "did you mean shop.Place?",
	} {
		if len(lines) != 5 || !strings.Contains(lines[i], want) {
			t.Fatalf("expected %q, found %q", want, lines)
		}
	}
	if o := <-ran; o.ID != 7 || o.Lines[0] != (line{"hat", 2.5}) {
		t.Errorf("ran with %+v", o)
	}

	py := startGodelayed(t, newPyLedger(t).env(), server, "--queue", queue, "--concurrency", "1")
	waitFor(t, "the functions of Python", func() bool {
		n, err := conn.Do("HLEN", queue+"_functions")
		return err == nil && n == int64(4) // with what the workers do
	})
	total := func(kwargs map[string]any, args ...any) *delayed.Task {
		return delayed.NewPyTask("interop:total", args, kwargs)
	}
	type object = map[string]any
	for task, want := range map[*delayed.Task]string{
		total(nil, []int{1, 2}):                      "",
		total(object{"numbers": nil, "failures": 0}): "",
		total(nil):                                    "found 0",
		total(nil, 7):                                 "expected list[int]",
		total(nil, []string{"7"}):                     "expected int64 at [0]",
		total(object{"failures": "2"}, nil):           "expected int,",
		delayed.NewPyTask("interop:totl", nil, nil):   "did you mean interop:total?",
		delayed.NewGoTask("shop.Place", order{ID: 1}): "",
		delayed.NewGoTask("shop.Place", 7):            "expected itest_test.order",
	} {
		_, err := q.Enqueue(t.Context(), task)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v: error %v, expected %q", task, err, want)
		}
		if err != nil && !errors.Is(err, delayed.ErrArguments) && !errors.Is(err, delayed.ErrFunction) {
			t.Errorf("%v: error %v of another kind", task, err)
		}
	}
	<-ran
	waitFor(t, "the end of all tasks", func() bool { n, err := q.Len(t.Context()); return err == nil && n == 0 })
	stopPython(t, py)
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	redistest.CheckInvariants(t, conn, queue, redistest.Invariants{Idle: true})
}
