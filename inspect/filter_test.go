package inspect_test

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// anyFilter returns a filter in which about every third field is set. Each field has few values, so that tasks match.
func anyFilter(r *rand.Rand) (f inspect.Filter) {
	fields := reflect.ValueOf(&f).Elem()
	for i := range fields.NumField() {
		if r.IntN(3) > 0 {
			continue
		}
		name := fields.Type().Field(i).Name
		switch field := fields.Field(i); name {
		case "Function":
			field.SetString([]string{"Welcome", "mail.Welcome", "app/mail.Welcome", "elcome"}[r.IntN(4)])
		case "ID":
			field.SetString([]string{"a", "ab", "b"}[r.IntN(3)])
		case "Arg":
			field.SetString([]string{"0", "0=1", "1"}[r.IntN(3)])
		case "Headers":
			field.Set(reflect.ValueOf(map[string]string{"k": []string{"", "v", "w"}[r.IntN(3)]}))
		case "OlderThan", "YoungerThan":
			field.SetInt(int64(time.Duration(1+r.IntN(3)) * time.Hour))
		case "MinAttempt", "MaxAttempt", "MinDeaths":
			field.SetInt(int64(1 + r.IntN(3)))
		default:
			field.SetString([]string{"x", "y"}[r.IntN(2)])
		}
	}
	return f
}

// anyTask returns a task that some of these filters match.
func anyTask(r *rand.Rand, now time.Time) *inspect.Task {
	word := func() string { return []string{"x", "y", "xy"}[r.IntN(3)] }
	t := &inspect.Task{
		ID: []string{"abc", "b"}[r.IntN(2)], Worker: word(), Attempt: r.IntN(4), Deaths: r.IntN(4),
		EnqueuedAt: now.Add(-time.Duration(r.IntN(240)) * time.Minute),
	}
	t.Function, t.Call, t.Args = []string{"app/mail.Welcome", "app/mail.Other"}[r.IntN(2)], word(), []any{r.IntN(2)}
	t.Error, t.Reason, t.Options.Group = word(), state.Reason(word()), word()
	if r.IntN(2) == 0 {
		t.Headers = map[string]string{"k": "v"}
	}
	return t
}

// A filter matches what each of its fields alone matches, and each field leaves something out.
func TestFieldsOfFilters(t *testing.T) {
	t.Parallel()
	r, now := rand.New(rand.NewPCG(1, 2)), time.Now()
	refused := map[string]int{}
	for range 20_000 {
		f, task := anyFilter(r), anyTask(r, now)
		want, zero := true, true
		fields := reflect.ValueOf(f)
		for i := range fields.NumField() {
			if fields.Field(i).IsZero() {
				continue
			}
			zero = false
			var alone inspect.Filter
			reflect.ValueOf(&alone).Elem().Field(i).Set(fields.Field(i))
			if !alone.Match(task, now) {
				want = false
				refused[fields.Type().Field(i).Name]++
			}
		}
		if got := f.Match(task, now); got != want || f.IsZero() != zero {
			t.Fatalf("%+v matches %+v: %v, expected %v; it is zero: %v, expected %v", f, task, got, want, f.IsZero(),
				zero)
		}
		// Deaths have no other condition, so this says which tasks the field is for.
		if only := (inspect.Filter{MinDeaths: f.MinDeaths}); only.Match(task, now) != (task.Deaths >= f.MinDeaths) {
			t.Fatalf("at least %d deaths: a task with %d matches: %v", f.MinDeaths, task.Deaths, only.Match(task, now))
		}
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[inspect.Filter]()) {
		if refused[field.Name] == 0 {
			t.Errorf("%s has left out no task", field.Name)
		}
	}
}
