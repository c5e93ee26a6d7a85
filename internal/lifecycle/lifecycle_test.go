package lifecycle_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/lua"
	"github.com/godelayed/delayed/state"
)

// transitions returns the lines of the diagram: one for each pair of states, with the changes between them.
func transitions() (lines []string) {
	by := map[[2]lifecycle.State][]string{}
	add := func(from, to lifecycle.State, label string) {
		if pair := [2]lifecycle.State{from, to}; !slices.Contains(by[pair], label) {
			by[pair] = append(by[pair], label)
		}
	}
	for _, m := range lifecycle.Moves {
		add(m.From, m.To, m.Script)
	}
	for _, end := range lifecycle.Ends {
		add(lifecycle.StateActive, end.To, end.Script)
	}
	for pair, labels := range by {
		lines = append(lines, fmt.Sprintf("    %s --> %s: %s", pair[0], pair[1], strings.Join(labels, ", ")))
	}
	slices.Sort(lines)
	return lines
}

// between returns the lines of a file between two lines.
func between(t *testing.T, name, first, last string) []string {
	t.Helper()
	text, err := os.ReadFile("../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n"+first+"\n")
	body, _, ok2 := strings.Cut(rest, "\n"+last)
	if !ok || !ok2 {
		t.Fatalf("%s: there is nothing between %q and %q", name, first, last)
	}
	return strings.Split(body, "\n")
}

// TestDiagram compares the diagram of docs/ARCHITECTURE.md with the tables.
func TestDiagram(t *testing.T) {
	got := between(t, "docs/ARCHITECTURE.md", "stateDiagram-v2", "```")
	sorted := slices.Sorted(slices.Values(got))
	if want := transitions(); !slices.Equal(sorted, want) {
		t.Errorf("the diagram should have these lines, in any order:\n%s", strings.Join(want, "\n"))
	}
}

// TestHooksTable compares the table of outcomes in docs/HOOKS.md with that of the code.
func TestHooksTable(t *testing.T) {
	got := between(t, "docs/HOOKS.md", "| the task | state then | counters of the day | events |",
		"\n### Why a worker stops\n")
	var want []string
	what := [lifecycle.Outcomes]string{
		"succeeded", "succeeded, and something is kept or a lock is freed", "was dropped by its handler",
		"failed, and is tried again", "is tried again after an error that `IsFailure` does not count",
		"failed for good", "was too late to start", "cannot be read", "was snoozed", "cannot run here", "is given back",
		"is given back as a suspect", "is handed on to Python workers", "joins a group", "was canceled",
	}
	list := func(of []string) string {
		if len(of) == 0 {
			return "–"
		}
		return "`" + strings.Join(of, "`, `") + "`"
	}
	for o, end := range lifecycle.Ends {
		var kinds []string
		for _, k := range end.Events {
			kinds = append(kinds, "event."+constant(k))
		}
		want = append(want, fmt.Sprintf("| %s | %s | %s | %s |", what[o], end.To, list(end.Counters), list(kinds)))
	}
	if got = slices.DeleteFunc(got,
		func(s string) bool { return s == "" || strings.HasPrefix(s, "|---") }); !slices.Equal(got, want) {
		t.Errorf("the table should have these rows:\n%s", strings.Join(want, "\n"))
	}
}

// constant returns the name of an event's constant: "task retried" is TaskRetried.
func constant(k event.Kind) string {
	words := strings.Fields(k.String())
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "")
}

// Each change of state is one script, and leads from a reachable state to one that only another change leaves.
func TestTablesAreWhole(t *testing.T) {
	reached, left := map[lifecycle.State]bool{lifecycle.StateNew: true},
		map[lifecycle.State]bool{lifecycle.StateGone: true}
	check := func(from, to lifecycle.State, script string) {
		reached[to], left[from] = true, true
		if !slices.Contains(lua.Names(), script) {
			t.Errorf("%s to %s: there is no script %s", from, to, script)
		}
	}
	for _, m := range lifecycle.Moves {
		check(m.From, m.To, m.Script)
	}
	for o, end := range lifecycle.Ends {
		if end.Name == "" || end.To == "" {
			t.Errorf("outcome %d has no row", o)
		}
		check(lifecycle.StateActive, end.To, end.Script)
	}
	for s := range left {
		if !reached[s] {
			t.Errorf("no task comes to be %s", s)
		}
	}
	for s := range reached {
		if !left[s] {
			t.Errorf("no task ceases to be %s", s)
		}
	}
}

// The public states have the same names.
func TestPublicStates(t *testing.T) {
	for s := state.Unknown + 1; !strings.HasPrefix(s.String(), "state."); s++ {
		known := slices.ContainsFunc(lifecycle.Moves,
			func(m lifecycle.Move) bool { return string(m.From) == s.String() })
		if !known && s != state.Active {
			t.Errorf("the tables do not know the state %s", s)
		}
	}
}
