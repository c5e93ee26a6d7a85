//go:build unix

package itest_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/embedded"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/rediscluster"
	"github.com/godelayed/delayed/state"
)

// TestFilters fills a queue with random tasks in all states and selects them with random filters. Each list has exactly
// the tasks that a loop over what is known of them finds, in the order of the whole list, forwards and backwards, and
// in pages of any size. So does an action to all that match.
func TestFilters(t *testing.T) {
	t.Parallel()
	t.Run("single", func(t *testing.T) {
		t.Parallel()
		rdb, err := delayed.Dial(redistest.Shared(t).URL())
		if err != nil {
			t.Fatal(err)
		}
		newArray(t, rdb.WithPrefix(redistest.Name(t)+":")).run(inChaos(70, 5000))
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		rdb, err := rediscluster.Dial(redistest.StartCluster(t).URL())
		if err != nil {
			t.Fatal(err)
		}
		newArray(t, rdb).run(inChaos(70, 5000))
	})
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		server, err := embedded.Start(embedded.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { server.Close() })
		rdb, err := delayed.Dial(server.URL())
		if err != nil {
			t.Fatal(err)
		}
		newArray(t, rdb).run(inChaos(40, 5000)) // each takes four times the processor time
	})
}

// run selects tasks with so many random filters, and with more until each field has decided about a task.
func (a *array) run(filters int) {
	a.Helper()
	a.fill(inChaos(70, 400))
	defer a.end()
	undecided := without(inspect.Filter{})
	for n := 0; n < filters || len(undecided) > 0; n++ {
		if n == 10_000 {
			a.Fatalf("these fields of Filter never decided whether a task was selected: %q",
				slices.Sorted(maps.Keys(undecided)))
		}
		in := inspect.States[a.IntN(len(inspect.States))]
		f := a.filter()
		whole := a.list(inspect.Query{State: in})
		a.complete(in, whole)
		q := inspect.Query{State: in, Filter: f, NewestFirst: a.IntN(2) == 0, Limit: 1 + a.IntN(9)}
		if a.IntN(3) == 0 {
			q.ScanLimit = 1 + a.IntN(20)
		}
		if q.NewestFirst {
			whole = a.list(inspect.Query{State: in, NewestFirst: true})
		}
		want := slices.DeleteFunc(slices.Clone(whole), func(id string) bool { return !a.tasks[id].matches(&f) })
		for name, rest := range without(f) {
			for _, t := range a.tasks {
				if t.matches(&rest) != t.matches(&f) {
					delete(undecided, name)
				}
			}
		}
		if found := a.list(q); !slices.Equal(found, want) {
			a.Fatalf("%v tasks, newest first %v, %+v:\nexpected %q\nfound    %q", in, q.NewestFirst, f, want, found)
		}
	}
	for _, in := range []state.Task{state.Archived, state.Completed, state.Scheduled} {
		a.deleteAll(in)
	}
}

// deleteAll deletes what a filter selects.
func (a *array) deleteAll(in state.Task) {
	a.Helper()
	f := a.filter()
	want := a.list(inspect.Query{State: in})
	matching := len(want)
	want = slices.DeleteFunc(want, func(id string) bool { return a.tasks[id].matches(&f) })
	matching -= len(want)
	q := inspect.Query{State: in, Filter: f}
	report, err := a.ins.DoAll(context.Background(), a.queue, inspect.Delete(), q, nil)
	if err != nil || report.Done != matching {
		a.Errorf("delete %v tasks with %+v: expected %d, found %+v, %v", in, f, matching, report, err)
	}
	left := a.list(inspect.Query{State: in})
	if !slices.Equal(left, want) {
		a.Errorf("delete %v tasks with %+v: expected that %q are left, found %q", in, f, want, left)
	}
}

// list returns the ids of a list.
func (a *array) list(q inspect.Query) []string {
	a.Helper()
	var ids []string
	for t, err := range a.ins.All(context.Background(), a.queue, q) {
		if err != nil {
			a.Fatal(err)
		}
		ids = append(ids, t.ID)
	}
	return ids
}

// complete checks that a whole list has all tasks in a state, and no other.
func (a *array) complete(in state.Task, found []string) {
	a.Helper()
	var want []string
	for id, t := range a.tasks {
		if t.in == in {
			want = append(want, id)
		}
	}
	slices.Sort(want)
	found = slices.Sorted(slices.Values(found))
	if !slices.Equal(found, want) {
		a.Fatalf("%v tasks: expected %q, found %q", in, want, found)
	}
}

// without returns a filter without one of its fields, for each field.
func without(f inspect.Filter) map[string]inspect.Filter {
	rest := map[string]inspect.Filter{}
	for i := range reflect.TypeFor[inspect.Filter]().NumField() {
		one := f
		v := reflect.ValueOf(&one).Elem()
		v.Field(i).SetZero()
		rest[v.Type().Field(i).Name] = one
	}
	return rest
}

// filter draws a filter. Most of its values are those of a task, so that something matches.
func (a *array) filter() (f inspect.Filter) {
	t := a.any()
	fields := 1 + a.IntN(3)
	for range fields {
		a.set(&f, t)
		if a.IntN(5) == 0 {
			t = a.any()
		}
	}
	return f
}

// any returns any task.
func (a *array) any() *arrayed { return a.tasks[a.ids[a.IntN(len(a.ids))]] }

// set draws one field of a filter, by a task.
func (a *array) set(f *inspect.Filter, t *arrayed) {
	pick := func(of ...string) string { return of[a.IntN(len(of))] }
	switch a.IntN(14) {
	case 0:
		name := t.function[strings.LastIndexAny(t.function, "/.:")+1:]
		f.Function = pick(name, t.function, name[1:], "mail."+name)
	case 1:
		f.ID = t.id[:a.IntN(len(t.id)+1)]
	case 2:
		if f.Error = pick(arrayErrors...); t.err != "" {
			f.Error = t.err[a.IntN(len(t.err)):]
		}
		f.Error = pick(f.Error, strings.ToUpper(f.Error))
	case 3:
		f.Reason = pick(t.reason, "failed", "arguments")
	case 4:
		f.Worker = pick(t.worker, a.workers[0].id, a.workers[1].id, a.workers[0].id[:9])
	case 5:
		f.Group = pick(t.group, "g1", "g2", "g")
	case 6:
		f.Headers = map[string]string{pick("tenant", "lang", "none"): ""}
		for k, v := range t.headers {
			f.Headers[k] = pick(v, "", "other")
		}
	case 7:
		i := a.IntN(len(t.call))
		f.Text = t.call[i : i+a.IntN(len(t.call)-i+1)]
	case 8:
		f.Arg = pick("0", "1", "5", "0=7", "to", "0.name", "1=en", "0.sum=1")
		for path, value := range t.values {
			f.Arg = pick(path, path+"="+value, path+"="+value, path+"=no")
			break
		}
	case 9:
		f.OlderThan = time.Duration(a.IntN(arrayAges))*arrayAge + arrayAge/2
	case 10:
		f.YoungerThan = time.Duration(a.IntN(arrayAges))*arrayAge + arrayAge/2
	case 11:
		f.MinAttempt = 1 + a.IntN(3)
	case 13:
		f.MinDeaths = 1 + a.IntN(2)
	case 12:
		f.MaxAttempt = 1 + a.IntN(3)
	}
}

// matches is what Filter promises, in other words.
func (t *arrayed) matches(f *inspect.Filter) bool {
	isFunction := t.function == f.Function
	for _, separator := range []string{"/", ".", ":"} {
		isFunction = isFunction || strings.HasSuffix(t.function, separator+f.Function)
	}
	hasHeaders := true
	for k, v := range f.Headers {
		value, has := t.headers[k]
		hasHeaders = hasHeaders && has && (v == "" || v == value)
	}
	path, value, valued := strings.Cut(f.Arg, "=")
	found, has := t.values[path]
	hasArg := has && (!valued || found == value)
	for _, c := range []struct{ isSet, holds bool }{
		{f.Function != "", isFunction},
		{f.ID != "", strings.Index(t.id, f.ID) == 0},
		{f.Error != "", strings.Contains(strings.ToUpper(t.err), strings.ToUpper(f.Error))},
		{f.Reason != "", t.reason == f.Reason},
		{f.Worker != "", t.worker == f.Worker},
		{f.Group != "", t.group == f.Group},
		{len(f.Headers) > 0, hasHeaders},
		{f.Text != "", strings.Contains(t.call, f.Text)},
		{f.Arg != "", hasArg},
		{f.OlderThan != 0, t.age > f.OlderThan},
		{f.YoungerThan != 0, t.age < f.YoungerThan},
		{f.MinAttempt != 0, t.attempt >= f.MinAttempt},
		{f.MinDeaths != 0, t.deaths >= f.MinDeaths},
		{f.MaxAttempt != 0, t.attempt <= f.MaxAttempt},
	} {
		if c.isSet && !c.holds {
			return false
		}
	}
	return true
}

// newArray returns an empty queue.
func newArray(t *testing.T, rdb *delayed.Store) *array {
	t.Helper()
	t.Cleanup(func() { rdb.Close() })
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	a := &array{
		T: t, Rand: rand.New(rand.NewPCG(seed, 0)), rdb: rdb, queue: "{a}mail",
		tasks: map[string]*arrayed{}, acts: map[string]string{}, started: make(chan string),
		release: make(chan struct{}), die: make(chan struct{}),
	}
	var err error
	if a.ins, err = inspect.New(rdb, inspect.Config{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		a.workers = append(a.workers, a.newWorker())
	}
	return a
}
