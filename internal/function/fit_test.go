package function

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/catalog"
	"github.com/godelayed/delayed/internal/wire"
)

// TestPublishedFunctionsTakeWhatWorkersTake makes calls by path and compares what a worker says of them with what
// catalog says from the function that the worker has published: it must not refuse what the worker takes. Of what it
// takes the worker refuses little.
func TestPublishedFunctionsTakeWhatWorkersTake(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	var taken, refused, missed int
	for _, f := range fuzzedFunctions(t) {
		var registry Registry
		if err := registry.Add([]*Function{f}, nil); err != nil {
			t.Fatal(err)
		}
		listing, _ := registry.Listing()
		published := catalog.Published{catalog.ParseListing(listing)}
		for range 600 {
			values := make([]any, 0, len(f.params)+2)
			for k := range f.params {
				if k < len(f.params)-1 || !f.variadic {
					values = append(values, madeFor(r, f.params[k].typ, 0))
					continue
				}
				for range r.IntN(3) {
					values = append(values, madeFor(r, f.elem.typ, 0))
				}
			}
			if n := r.IntN(20); n < 2 && len(values) > 0 {
				values = values[:len(values)-1]
			} else if n == 2 {
				values = append(values, 1)
			}
			payload, _, err := EncodeArgs(wire.ByName, f.Path(), values, nil)
			if err != nil {
				continue // such as a float that is no JSON; producers refuse it
			}
			msg := wire.Message{Kind: wire.GoExtended, Path: f.Path(), Payload: payload}
			msg.Meta.ID, msg.Meta.HasN, msg.Meta.N = "x", true, len(values)
			_, _, misfit := f.ArgsOf(msg.Append(nil))
			says := published.Check(f.Path(), decodedAny(t, &msg), nil, true)
			switch {
			case misfit == nil && says != nil:
				t.Fatalf("%v: the worker takes %#v, and the published function refuses: %v", f.fn.Type(), values, says)
			case misfit == nil:
				taken++
			case says != nil:
				refused++
			default:
				missed++
			}
		}
	}
	if taken < 1500 || refused < 900 || missed > refused/10 {
		t.Errorf("%d calls are taken, %d refused and %d refused by workers only", taken, refused, missed)
	}
}

// decodedAny returns the arguments of a message as a producer has them.
func decodedAny(t *testing.T, m *wire.Message) (args []any) {
	t.Helper()
	list, err := Split(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range list {
		v, _, err := wire.DecodeAny(raw)
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, v)
	}
	return args
}

// madeFor returns a value that often fits a type.
func madeFor(r *rand.Rand, t reflect.Type, depth int) any {
	odd := []any{
		nil, true, 0, -1, 300, int64(math.MinInt64), uint64(math.MaxUint64), 1.5, 2.0, "text", []byte("four"),
		time.Unix(7, 0),
		[]any{},
		[]any{1, "x"},
		map[string]any{},
		map[string]any{"a": 1},
		map[int]any{1: nil},
	}
	if r.IntN(12) == 0 || depth > 4 {
		return odd[r.IntN(len(odd))]
	}
	switch t.Kind() {
	case reflect.Bool:
		return r.IntN(2) == 0
	case reflect.String:
		return "s"
	case reflect.Float32, reflect.Float64:
		return []any{1.5, 7, float32(2)}[r.IntN(3)]
	case reflect.Pointer:
		if r.IntN(3) == 0 {
			return nil
		}
		return madeFor(r, t.Elem(), depth)
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return make([]byte, 4)
		}
		n := r.IntN(3)
		if t.Kind() == reflect.Array {
			n = min(t.Len(), 5)
		}
		list := make([]any, n)
		for i := range list {
			list[i] = madeFor(r, t.Elem(), depth+1)
		}
		return list
	case reflect.Map:
		m := map[any]any{}
		for range r.IntN(3) {
			k := madeFor(r, t.Key(), depth+1)
			if k == nil || !reflect.TypeOf(k).Comparable() {
				k = "k"
			}
			m[k] = madeFor(r, t.Elem(), depth+1)
		}
		return m
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			return time.Unix(int64(r.IntN(1000)), 0)
		}
		var shapes wire.Shapes
		ref, err := shapes.Of(t)
		if err != nil {
			return nil
		}
		m := map[string]any{}
		for i, field := range shapes.Types[ref.Name].Fields {
			if r.IntN(3) > 0 {
				m[field.Name] = madeFor(r, fieldType(t, i, field.Name), depth+1)
			}
		}
		if r.IntN(20) == 0 {
			m["unknown"] = 1
		}
		return m
	case reflect.Interface:
		return odd[r.IntN(len(odd))]
	default:
		return r.IntN(100)
	}
}

// fieldType returns the type of a field by its name in messages, or by its place.
func fieldType(t reflect.Type, i int, name string) reflect.Type {
	for k := range t.NumField() {
		f := t.Field(k)
		if f.Name == name || f.Tag.Get("msgpack") == name {
			return f.Type
		}
	}
	return t.Field(min(i, t.NumField()-1)).Type
}
