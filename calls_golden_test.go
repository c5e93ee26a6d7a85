package delayed_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/group"
	"github.com/godelayed/delayed/internal/wire"
)

// goldenCall is an entry of testdata/wire/calls.json; README.md there describes the fields.
type goldenCall struct {
	Name, Path, ID, Lock, Group, Hex string
	Extended                         bool
	Args, Kwargs                     any
	Options                          map[string]any
	List                             []int
}

// Calls with options give the messages, locks and groups of the vectors, with which Python's producer is tested as
// well.
func TestGoldenCalls(t *testing.T) {
	raw, err := os.ReadFile("testdata/wire/calls.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Now     int64
		Vectors []goldenCall
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Vectors) < 30 {
		t.Fatalf("only %d vectors", len(doc.Vectors))
	}
	for _, v := range doc.Vectors {
		t.Run(v.Name, func(t *testing.T) { v.check(t, doc.Now) })
	}
}

func (v *goldenCall) check(t *testing.T, now int64) {
	t.Helper()
	rdb, err := delayed.Dial("redis://localhost:1")
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	legacy := strings.Contains(v.Path, ":") && !v.Extended
	q, err := delayed.OpenQueue(rdb, delayed.QueueConfig{Name: "golden", Legacy: legacy})
	if err != nil {
		t.Fatal(err)
	}
	args := goldenAs[[]any](t, plainJSON(t, v.Args))
	task := delayed.NewGoTask(v.Path, args...)
	if strings.Contains(v.Path, ":") {
		kwargs, _ := plainJSON(t, v.Kwargs).(map[string]any)
		task = delayed.NewPyTask(v.Path, args, kwargs)
	}
	b, _, lock, err := delayed.Message(q.With(goldenOptions(t, v.Options)...), task, now)
	if err != nil {
		t.Fatal(err)
	}
	if lock != v.Lock {
		t.Errorf("lock %q, expected %q", lock, v.Lock)
	}
	msg, err := wire.Parse(b, wire.Default)
	if err != nil {
		t.Fatal(err)
	}
	if msg.Meta.ID != "" { // a random id
		msg.Meta.ID = v.ID
	}
	if msg.Kind == wire.PyExtended { // Go need not count arguments with names
		kwargs, _ := v.Kwargs.(map[string]any)
		msg.Meta.HasN, msg.Meta.N = true, len(args)+len(kwargs)
	}
	b = msg.Append(nil)
	if got := hex.EncodeToString(b); got != v.Hex {
		t.Errorf("message\n%s, expected\n%s", got, v.Hex)
	}
	if v.Group == "" {
		return
	}
	m, err := group.NewMember(b)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(m.Group, m.Bytes, m.Values); got != fmt.Sprint(v.Group, v.List[0], v.List[1]) {
		t.Errorf("group %s, expected %s %v", got, v.Group, v.List)
	}
}

// goldenOptions are options by the names that Python gives them. Durations are in seconds.
func goldenOptions(t *testing.T, given map[string]any) (options []delayed.Option) {
	t.Helper()
	number := func(v any) float64 {
		f, err := goldenAs[json.Number](t, v).Float64()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	span := func(name string) time.Duration {
		return time.Duration(math.Round(number(given[name])*1e6)) * time.Microsecond
	}
	var gather delayed.GatherPolicy
	for name, value := range given {
		switch name {
		case "retry":
			options = append(options, delayed.MaxRetry(int(number(value))))
		case "timeout":
			options = append(options, delayed.Timeout(span(name)))
		case "deadline":
			options = append(options, delayed.Deadline(goldenAs[time.Time](t, plainJSON(t, value))))
		case "ttl":
			options = append(options, delayed.TTL(span(name)))
		case "retention":
			options = append(options, delayed.Retention(span(name)))
		case "keep_result":
			options = append(options, delayed.KeepResult(span(name)))
		case "retry_until":
			options = append(options, delayed.RetryUntil(goldenAs[time.Time](t, plainJSON(t, value))))
		case "max_backoff":
			options = append(options, delayed.MaxBackoff(span(name)))
		case "backoff":
			var waits []time.Duration
			for _, w := range goldenAs[[]any](t, value) {
				waits = append(waits, time.Duration(number(w)*1e9))
			}
			options = append(options, delayed.Backoff(waits...))
		case "headers":
			for key, text := range goldenAs[map[string]any](t, value) {
				options = append(options, delayed.Header(key, fmt.Sprint(text)))
			}
		case "task_id":
			options = append(options, delayed.TaskID(fmt.Sprint(value)))
		case "unique":
			if key, ok := given["unique_key"]; ok {
				options = append(options, delayed.UniqueKey(fmt.Sprint(key), span(name)))
			} else {
				options = append(options, delayed.Unique(span(name)))
			}
		case "until_start":
			options = append(options, delayed.UntilStart())
		case "on_conflict":
			options = append(options,
				delayed.OnConflict(map[any]delayed.Conflict{
					"error": delayed.Fail, "skip": delayed.Skip,
					"replace": delayed.Replace,
				}[value]))
		case "debounce":
			options = append(options, delayed.Debounce(span(name)))
		case "group":
			options = append(options, delayed.Group(fmt.Sprint(value)))
		case "group_grace":
			gather.Grace = span(name)
		case "group_max_delay":
			gather.MaxDelay = span(name)
		case "group_max_size":
			gather.MaxSize = int(number(value))
		case "unique_key":
		default:
			t.Fatalf("unknown option %q", name)
		}
	}
	if given["group"] != nil {
		options = append(options, delayed.Gather(gather))
	}
	return options
}

// goldenAs returns v as a T.
func goldenAs[T any](t *testing.T, v any) T {
	t.Helper()
	x, ok := v.(T)
	if !ok {
		t.Fatalf("%v is a %T, expected a %T", v, v, x)
	}
	return x
}

// plainJSON turns a value in the notation of testdata/wire/README.md into one of Go.
func plainJSON(t *testing.T, v any) any {
	t.Helper()
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil {
			t.Fatal(err)
		}
		return f
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plainJSON(t, v[i])
		}
		return out
	case map[string]any:
		if text, ok := v["$bin"].(string); ok {
			b, err := hex.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		if parts, ok := plainJSON(t, v["$time"]).([]any); ok {
			return time.Unix(goldenAs[int64](t, parts[0]), goldenAs[int64](t, parts[1])).UTC()
		}
		if pairs, ok := plainJSON(t, v["$map"]).([]any); ok {
			out := map[any]any{}
			for _, pair := range pairs {
				kv := goldenAs[[]any](t, pair)
				out[kv[0]] = kv[1]
			}
			return out
		}
		out := map[string]any{}
		for key, e := range v {
			out[key] = plainJSON(t, e)
		}
		return out
	}
	return v
}
