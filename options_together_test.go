package delayed_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
)

// Options that contradict each other are refused; none of them is ignored.
func TestOptionsThatContradict(t *testing.T) {
	t.Parallel()
	rdb, err := delayed.Dial("redis://localhost:1") // never connects
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	q := delayed.NewQueue("q", rdb)
	f := delayed.Func(func() {}, delayed.Name("f"))
	in, at, debounce := delayed.In(time.Hour), delayed.At(time.Now().Add(time.Hour)), delayed.Debounce(time.Minute)
	for name, opts := range map[string][]delayed.Option{
		"Debounce and In":    {debounce, in},
		"In and Debounce":    {in, debounce},
		"At and Debounce":    {at, debounce},
		"In(0) and Debounce": {delayed.In(0), debounce},
	} {
		one, two := q.With(opts...), q.With(opts[0]).With(opts[1])
		for _, q := range []*delayed.Queue{one, two} {
			if _, err := q.Delay(f); !errors.Is(err, delayed.ErrArguments) ||
				!strings.Contains(err.Error(), "Debounce") {
				t.Errorf("%s: %v, expected an error about Debounce", name, err)
			}
		}
	}
}

// TestFuncTimeoutZero: Timeout(0) of Func means no limit, also for tasks without a timeout, such as those of NewGoTask.
func TestFuncTimeoutZero(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	bounded := make(chan bool, 1)
	f := b.fn("f", func(ctx context.Context) { _, ok := ctx.Deadline(); bounded <- ok }, delayed.Timeout(0))
	cfg := b.config()
	cfg.Timeout = time.Hour
	b.work(cfg, f)
	_, err := b.q.Enqueue(bg, delayed.NewGoTask(b.Name+".f"))
	b.Must(err)
	if await(b, "the call", bounded) {
		t.Error("the worker's timeout holds")
	}
}

// Options for one point in time cannot hold for all ticks of an entry.
func TestEntryWithOneMoment(t *testing.T) {
	t.Parallel()
	rdb, err := delayed.Dial("redis://localhost:1") // never connects
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	soon := time.Now().Add(time.Hour)
	for _, o := range []delayed.Option{delayed.Deadline(soon), delayed.RetryUntil(soon)} {
		_, err := delayed.NewScheduler(rdb, delayed.SchedulerConfig{Queue: "q", Owner: "o", Entries: []delayed.Entry{{
			Name: "e", Spec: "@daily", Options: []delayed.Option{o},
			Task: delayed.Call(delayed.Func(func() {}, delayed.Name("f"))),
		}}})
		if err == nil || !strings.Contains(err.Error(), "RetryUntil: one moment") {
			t.Errorf("%v: %v, expected an error that says why", o, err)
		}
	}
}
