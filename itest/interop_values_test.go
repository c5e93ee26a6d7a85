//go:build unix

package itest_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// pythonValue is a row of testdata/wire/python_values.json; README.md there describes it.
type pythonValue struct {
	Name, Go, Python string
	Arrives, Returns string
	Producer, Worker string
}

// arrived records the arguments of handlers.
type arrived struct {
	mu    sync.Mutex
	shown map[string]string
}

// echo returns a handler that records its argument under the name of a row, and returns it.
func echo[T any](a *arrived, name string) *delayed.Function {
	return delayed.Func(func(row string, v T) T {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.shown[row] = show(v)
		return v
	}, delayed.Name("values."+name))
}

// TestPythonValuesInGo sends every value of the table from Python. Either it arrives in a Go handler as the table says
// and comes back as a result, or the producer refuses it, or the worker does, with an error that says why.
func TestPythonValuesInGo(t *testing.T) {
	t.Parallel()
	table, err := filepath.Abs("../testdata/wire/python_values.json")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Vectors []pythonValue }
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	server := redistest.Shared(t)
	queue := redistest.Name(t)
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	a := &arrived{shown: map[string]string{}}
	w := runWorker(t, rdb, delayed.WorkerConfig{Queues: delayed.Strict{queue}},
		echo[bool](a, "bool"), echo[int](a, "int"), echo[int8](a, "int8"), echo[int16](a, "int16"),
		echo[int32](a, "int32"), echo[int64](a, "int64"),
		echo[uint8](a, "uint8"), echo[uint16](a, "uint16"), echo[uint32](a, "uint32"), echo[uint64](a, "uint64"),
		echo[float32](a, "float32"),
		echo[float64](a, "float64"), echo[string](a, "string"), echo[[]byte](a, "bytes"), echo[[4]byte](a, "bytes4"),
		echo[time.Time](a, "time"),
		echo[time.Duration](a, "duration"), echo[any](a, "any"), echo[*int](a, "pointer"), echo[[]int](a, "ints"),
		echo[[3]int](a, "array3"),
		echo[map[string]int](a, "map"), echo[map[int]string](a, "intmap"), echo[point](a, "point"),
		echo[[]point](a, "points"))
	said := map[string]pythonValue{}
	answers := filepath.Join(t.TempDir(), "answers")
	runPython(t, "../../python-compat/tests/value_table.py", server.URL(), queue, table, answers)
	lines, err := os.ReadFile(answers)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(lines)) {
		var row pythonValue
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		said[row.Name] = row
	}
	w.stop()
	if len(doc.Vectors) < 60 || len(said) != len(doc.Vectors) {
		t.Errorf("%d rows in the table, %d answers; expected at least 60, and as many answers", len(doc.Vectors),
			len(said))
	}
	for _, row := range doc.Vectors {
		got := said[row.Name]
		got.Go, got.Python, got.Arrives = row.Go, row.Python, a.shown[row.Name]
		if got != row {
			t.Errorf("%s: %s for %s:\nfound    %q\nexpected %q", row.Name, row.Python, row.Go, got, row)
		}
	}
}

// TestGoValuesInPython sends values from Go, as arguments of Python tasks and as results. Python reads them as the
// table says.
func TestGoValuesInPython(t *testing.T) {
	t.Parallel()
	five := 5
	table := []struct {
		value any
		want  string
	}{
		{nil, "None"},
		{true, "True"},
		{int8(-128), "-128"},
		{int64(math.MinInt64), "-9223372036854775808"},
		{uint64(math.MaxUint64), "18446744073709551615"},
		{float32(0.5), "0.5"},
		{float32(0.1), "0.10000000149011612"}, // the exact value of the float32
		{0.1, "0.1"},
		{math.NaN(), "nan"},
		{math.Inf(-1), "-inf"},
		{math.Copysign(0, -1), "-0.0"},
		{5e-324, "5e-324"},
		{"", "''"},
		{"grüße 😀\x00", "'grüße 😀\\x00'"},
		{[]byte{}, "b''"},
		{[]byte(nil), "None"},
		{[]byte("\xff"), "b'\\xff'"},
		{[2]byte{1, 2}, "b'\\x01\\x02'"},
		{json.RawMessage("{}"), "b'{}'"},
		{[]int{}, "[]"},
		{[]int(nil), "None"},
		{[]any{1, "a", nil, []int{2}}, "[1, 'a', None, [2]]"},
		{[2]string{"a", "b"}, "['a', 'b']"},
		{map[string]int{"b": 1, "a": 2}, "{'a': 2, 'b': 1}"},
		{map[string]int(nil), "None"},
		{map[int]string{-1: "x", 300: "y"}, "{300: 'y', -1: 'x'}"},
		{map[bool]int{true: 1}, "{True: 1}"},
		{point{1, -2}, "{'X': 1, 'Y': -2}"},
		{&point{1, -2}, "{'X': 1, 'Y': -2}"},
		{[]pyStruct{{1, "x", nil}}, "[{'ID': 1, 'name': 'x', 'Tags': None}]"}, // with the names of the tags
		{(*point)(nil), "None"},
		{struct{}{}, "{}"},
		{&five, "5"},
		{time.Second, "1000000000"},
		{time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC), "2026-01-02T03:04:05.678901+00:00"},
		{time.Date(2026, 1, 2, 3, 0, 0, 0, time.FixedZone("", 19800)), "2026-01-01T21:30:00+00:00"},
		{time.Date(2026, 1, 2, 3, 4, 5, 1, time.UTC), "2026-01-02T03:04:05+00:00"},
		{time.Time{}, "0001-01-01T00:00:00+00:00"},
		{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), "Timestamp(seconds=253402300800, nanoseconds=0)"},
		{[]time.Time{time.Unix(0, 0)}, "[1970-01-01T00:00:00+00:00]"},
	}
	server := redistest.Shared(t)
	pending, queue := redistest.Name(t), redistest.Name(t)
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	give := delayed.Func(func(i int) any { return table[i].value }, delayed.Name("values.give"),
		delayed.KeepResult(time.Hour))
	runWorker(t, rdb, delayed.WorkerConfig{Queues: delayed.Strict{queue}}, give)
	answers := filepath.Join(t.TempDir(), "answers")
	args := []string{"read", server.URL(), pending, answers}
	for i, row := range table {
		if _, err := delayed.NewQueue(pending, rdb).Enqueue(t.Context(),
			delayed.NewPyTask("values:take", []any{row.value}, nil)); err != nil {
			t.Fatal(err)
		}
		ref, err := delayed.NewQueue(queue, rdb).Delay(give, i)
		if err != nil {
			t.Fatal(err)
		}
		if err := ref.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		args = append(args, queue+"/"+ref.ID())
	}
	runPython(t, "../../python-compat/tests/value_table.py", args...)
	lines, err := os.ReadFile(answers)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(lines)) {
		var text string
		if err := json.Unmarshal([]byte(line), &text); err != nil {
			t.Fatal(err)
		}
		got = append(got, text)
	}
	if len(got) != 2*len(table) {
		t.Fatalf("%d answers, expected %d", len(got), 2*len(table))
	}
	for i, row := range table {
		if got[i] != row.want || got[len(table)+i] != row.want {
			t.Errorf("%T %v: as an argument %s, as a result %s, expected %s", row.value, row.value, got[i],
				got[len(table)+i], row.want)
		}
	}
}

// show writes a value with the types inside it.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case time.Time:
		return v.Format(time.RFC3339Nano)
	case []byte:
		if v == nil {
			return "[]byte(nil)"
		}
		return "[]byte " + short(hex.EncodeToString(v))
	case string:
		return short(fmt.Sprintf("%q", v))
	case *int:
		if v == nil {
			return "*int nil"
		}
		return fmt.Sprintf("*int %d", *v)
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = show(v[i])
		}
		return short("[" + strings.Join(parts, ", ") + "]")
	case map[string]any:
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, fmt.Sprintf("%q: %s", k, show(v[k])))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case map[any]any:
		var parts []string
		for k, e := range v {
			parts = append(parts, show(k)+": "+show(e))
		}
		slices.Sort(parts)
		return "any{" + strings.Join(parts, ", ") + "}"
	case bool, float64, float32:
		return fmt.Sprintf("%T %v", v, v)
	}
	return strings.ReplaceAll(fmt.Sprintf("%T %#v", v, v), "itest_test.", "")
}

// short shortens a long text.
func short(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%s… %d", s[:most], len(s))
}
