//go:build unix

package itest_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// pyStruct receives a dict or a tuple of Python.
type pyStruct struct {
	ID   int
	Name string   `msgpack:"name"`
	Tags []string `msgpack:",omitempty"`
}

// recorded are the calls of one worker's functions.
type recorded struct {
	mu    sync.Mutex
	calls []recordedCall
}

type recordedCall struct {
	name string
	args []any
}

func (r *recorded) add(name string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, recordedCall{name, args})
}

func (r *recorded) all() []recordedCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]recordedCall(nil), r.calls...)
}

// functions returns the functions that the shapes of python/shapes.py call, with the same names.
func (r *recorded) functions() []any {
	hasContext := func(ctx context.Context) bool { return ctx.Err() == nil }
	var fns []any
	add := func(name string, fn any) { fns = append(fns, delayed.Func(fn, delayed.Name("interop."+name))) }
	add("Nothing", func() { r.add("Nothing") })
	add("OnlyContext", func(ctx context.Context) { r.add("OnlyContext", hasContext(ctx)) })
	add("Int", func(n int64) { r.add("Int", n) })
	add("Uint8", func(n uint8) { r.add("Uint8", n) })
	add("Uint64", func(n uint64) { r.add("Uint64", n) })
	add("Float", func(f float64) { r.add("Float", f) })
	add("Bool", func(b bool) { r.add("Bool", b) })
	add("String", func(s string) { r.add("String", s) })
	add("Bytes", func(b []byte) { r.add("Bytes", b) })
	add("Ints", func(n []int) { r.add("Ints", n) })
	add("Map", func(m map[string]int) { r.add("Map", m) })
	add("Time", func(at time.Time) { r.add("Time", at) })
	add("Any", func(v any) { r.add("Any", v) })
	add("ContextInt", func(ctx context.Context, n int) { r.add("ContextInt", hasContext(ctx), n) })
	add("IntString", func(n int, s string) { r.add("IntString", n, s) })
	add("ContextIntString", func(ctx context.Context, n int, s string) error {
		r.add("ContextIntString", hasContext(ctx), n, s)
		return nil
	})
	add("Pointers", func(n *int, s *string) { r.add("Pointers", *n, s == nil) })
	add("Nested", func(n [][]int, m map[string][]map[string]int) { r.add("Nested", n, m) })
	add("Join", func(sep string, parts ...string) { r.add("Join", strings.Join(parts, sep), len(parts)) })
	add("Sum", func(n ...int) { r.add("Sum", append([]int{}, n...)) })
	add("Anys", func(v ...any) { r.add("Anys", v...) })
	add("Struct", func(s pyStruct) { r.add("Struct", s) })
	add("StructPointer", func(s *pyStruct) { r.add("StructPointer", *s) })
	add("IntStruct", func(n int, s pyStruct) { r.add("IntStruct", n, s) })
	add("Structs", func(s []pyStruct) { r.add("Structs", s) })
	return fns
}

// goShapes gives for each shape the function that must be called and its arguments. Shapes that are not listed call
// nothing: their tasks are archived.
var goShapes = map[string]recordedCall{
	"bare":         {"Nothing", nil},
	"bare-none":    {"Nothing", nil},
	"bare-context": {"OnlyContext", []any{true}},
	"empty-tuple":  {"Nothing", nil},

	"one-int":         {"Int", []any{int64(42)}},
	"one-negative":    {"Int", []any{int64(math.MinInt64)}},
	"one-uint64":      {"Uint64", []any{uint64(math.MaxUint64)}},
	"one-float":       {"Float", []any{1.5}},
	"one-whole-float": {"Float", []any{3.0}},
	"one-bool":        {"Bool", []any{true}},
	"one-str":         {"String", []any{"Grüße, 世界"}},
	"one-empty-str":   {"String", []any{""}},
	"one-bytes":       {"Bytes", []any{[]byte{0x00, 0xff, 0xc1}}},
	"one-list":        {"Ints", []any{[]int{1, 2, 3}}},
	"one-empty-list":  {"Ints", []any{[]int{}}},
	"one-dict":        {"Map", []any{map[string]int{"a": 1, "b": 2}}},
	"one-time":        {"Time", []any{time.Unix(1700000000, 123456789).UTC()}},
	"one-any": {"Any", []any{map[string]any{
		"deep": []any{int64(1), map[string]any{"er": nil}}, "b": []byte("x"),
	}}},
	"one-in-tuple":     {"Int", []any{int64(42)}},
	"one-str-in-tuple": {"String", []any{"x"}},
	"context-and-one":  {"ContextInt", []any{true, 42}},

	"two":             {"IntString", []any{7, "seven"}},
	"two-list":        {"IntString", []any{7, "seven"}},
	"context-and-two": {"ContextIntString", []any{true, 7, "seven"}},
	"pointer":         {"Pointers", []any{7, true}},
	"nested": {
		"Nested",
		[]any{[][]int{{1, 2}, {}, {3}}, map[string][]map[string]int{"a": {{"x": 1}, {"x": 2}}}},
	},

	"variadic-wrapped":       {"Join", []any{"a-b-c", 3}},
	"variadic-wrapped-tuple": {"Join", []any{"a-b", 2}},
	"variadic-wrapped-none":  {"Join", []any{"", 0}},
	"variadic-alone":         {"Sum", []any{[]int{1, 2, 3}}},
	"variadic-alone-one":     {"Sum", []any{[]int{1}}},
	"variadic-alone-none":    {"Sum", []any{[]int{}}},
	"variadic-alone-bare":    {"Sum", []any{[]int{}}},
	"variadic-any":           {"Anys", []any{int64(1), "test", nil, []any{int64(2), "x"}}},

	"struct-dict":         {"Struct", []any{pyStruct{7, "x", []string{"a"}}}},
	"struct-dict-omitted": {"Struct", []any{pyStruct{7, "x", nil}}},
	"struct-tuple":        {"Struct", []any{pyStruct{7, "x", []string{"a"}}}},
	"struct-second":       {"IntStruct", []any{1, pyStruct{7, "x", []string{}}}},
	"struct-pointer":      {"StructPointer", []any{pyStruct{7, "x", []string{"a"}}}},
	"structs":             {"Structs", []any{[]pyStruct{{1, "a", nil}, {2, "b", []string{}}}}},
}

// TestPythonEnqueuesGoTasks: the real package enqueues one task of every shape that its README shows, and of many more,
// each on a queue of its own. The test checks the calls of a worker.
func TestPythonEnqueuesGoTasks(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	base := redistest.Name(t)
	shapes := runPython(t, "producer.py", "--url", server.URL(), "--queue", base, "shapes", "--queue-per-shape")
	seen := map[string]bool{}
	for _, shape := range shapes {
		if strings.HasPrefix(shape, "py-") || strings.HasPrefix(shape, "readme-") {
			continue
		}
		seen[shape] = true
		want, good := goShapes[shape]
		if !good && !strings.HasPrefix(shape, "bad-") {
			t.Errorf("shape %s of python/shapes.py is not in goShapes", shape)
		}
		t.Run(shape, func(t *testing.T) {
			t.Parallel()
			queue := base + "." + shape
			raw := onlyPending(t, server, queue)
			var r recorded
			startWorkerHere(t, handle(t, server).WithLegacy(), delayed.WorkerConfig{Queues: delayed.Strict{queue}},
				r.functions()...)
			waitFor(t, "the task to end", func() bool {
				return count(t, server, queue, "processed") > 0 || count(t, server, queue, "archived") > 0 ||
					count(t, server, queue, "parked") > 0
			})
			calls := r.all()
			if good {
				if len(calls) != 1 || !reflect.DeepEqual(calls[0], want) {
					t.Errorf("message %x: expected the call %v, found %v", raw, showCall(want), showCalls(calls))
				}
				return
			}
			if len(calls) > 0 {
				t.Errorf("message %x: expected no call, found %v", raw, showCalls(calls))
			}
			// The message stays unchanged, as Python wrote it.
			set := "_archived"
			if shape == "bad-key" {
				set = "_parked" // another version may have that field
			}
			if kept := filedIn(t, server, queue, set); len(kept) != 1 || kept[0] != raw {
				t.Errorf("expected the message %x in %s, found %x", raw, set, kept)
			}
		})
	}
	for shape := range goShapes {
		if !seen[shape] {
			t.Errorf("shape %s is expected here but python/shapes.py does not enqueue it", shape)
		}
	}
}

// TestReadmeCalls runs the calls of the package's README on functions of Go's own library, by their paths.
func TestReadmeCalls(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	queue := redistest.Name(t)
	runPython(t, "producer.py", "--url", server.URL(), "--queue", queue, "shapes", "--only", "readme-")
	printed := captureStdout(t, func() {
		stop := startWorkerHere(t, handle(t, server).WithLegacy(),
			delayed.WorkerConfig{Queues: delayed.Strict{queue}, Concurrency: 1},
			syscall.Kill, fmt.Printf, fmt.Println)
		waitFor(t, "three calls", func() bool { return count(t, server, queue, "processed") == 3 })
		stop()
	})
	if n := count(t, server, queue, "failed"); n != 0 {
		t.Errorf("expected no failures, found %d", n)
	}
	if want := "1 test\n1 test\n"; printed != want {
		t.Errorf("expected fmt.Printf and fmt.Println to print %q, found %q", want, printed)
	}
}

// captureStdout returns what f prints, together with what it starts and waits for.
func captureStdout(t *testing.T, f func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	stdout := os.Stdout
	os.Stdout = w
	func() {
		defer func() {
			os.Stdout = stdout
			w.Close()
		}()
		f()
	}()
	// A pipe holds far more than was printed.
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func showCall(c recordedCall) string { return fmt.Sprintf("%s%#v", c.name, c.args) }

func showCalls(calls []recordedCall) []string {
	var all []string
	for _, c := range calls {
		all = append(all, showCall(c))
	}
	return all
}
