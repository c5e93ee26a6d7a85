package function

import (
	"bytes"
	"context"
	"errors"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/wire"
)

// roomy takes four kilobytes for one byte of message, unless it is refused.
type roomy struct {
	Room [512]int64 `msgpack:"room,omitempty"`
}

// fuzzed are functions of all sorts. They keep and allocate nothing.
var fuzzed = []any{
	func() {},
	func(int8) {},
	func(int64, string) {},
	func(context.Context, uint16, float32, bool) error { return nil },
	func(int, *argItem, []int) {},
	func(...int) {},
	func(string, ...argItem) {},
	func(int, ...any) {},
	func(argOrder, time.Time) {},
	func(map[string]any, []byte) {},
	func(any) {},
	func(argTree) {},
	func([][]string, [4]uint8) {},
	func(*sparse) {},
	func([]roomy) {},
	func(...*roomy) {},
	func(*[4096]int64, map[int8]roomy) {},
	Func(func(int, []int, *argItem) {}, Name("test.fn"), Optional(2)),
	Func(func([]int, any) {}, Name("test.fn"), Optional(1)),
	Func(func(argItem, ...argItem) {}, Name("test.fn"), Optional(2)),
}

// FuzzCall calls functions with arbitrary payloads. Nothing panics, the error is one about arguments, and memory stays
// within 64 times the input and 64 KiB.
func FuzzCall(f *testing.F) {
	for _, p := range []any{
		nil, 1, -1, 300, 1.5, "x", []byte("x"), argTime,
		wireList{},
		wireList{7, "x"},
		wireList{"s", 1, 2},
		wireList{"s", wireList{wireList{"x", 1}}},
		wireList{1, wireList{"x", 1}, wireList{1, 2}},
		wireList{wireList{5, wireList{wireList{"n", 1}}, "note"}, argTime},
		wireList{wireDict{{"a", wireList{1, 2.5, "x"}}}, []byte{1}},
		wireList{wireList{wireList{}}},
		wireDict{{"tenant", "A"}, {"inner", wireDict{}}},
		wireList{wireDict{}, wireDict{}, wireDict{}},
		wireList{nil, wireDict{{1, wireDict{}}}},
		wireList{1, true, 3},
	} {
		f.Add(packed(p), int16(-1))
		if l, ok := p.(wireList); ok {
			f.Add(packed(p), int16(len(l)))
		}
	}
	// Long inputs make the fuzzer slow; TestHostilePayloads covers them.
	f.Add(append(wire.AppendArrayHeader(nil, 100), bytes.Repeat([]byte{0x80}, 100)...), int16(-1))
	f.Add(bytes.Repeat([]byte{0x91}, 40), int16(1))
	fns := fuzzedFunctions(f)
	f.Fuzz(func(t *testing.T, payload []byte, n int16) { checkCalls(t, fns, payload, int(n)) })
}

// Inputs that took gigabytes or crashed the process with unguarded decoders.
func TestHostilePayloads(t *testing.T) {
	fns := fuzzedFunctions(t)
	nested := func(n int) (b []byte) { // each header claims all the bytes that remain
		for len(b)+5 < n {
			left := uint32(n - len(b) - 5)
			b = append(b, 0xdd, byte(left>>24), byte(left>>16), byte(left>>8), byte(left))
		}
		return b
	}
	for name, payload := range map[string][]byte{
		"many small maps":      append(wire.AppendArrayHeader(nil, 60000), bytes.Repeat([]byte{0x80}, 60000)...),
		"many nils":            append(wire.AppendArrayHeader(nil, 65000), bytes.Repeat([]byte{0xc0}, 65000)...),
		"many empty arrays":    append(wire.AppendArrayHeader(nil, 60000), bytes.Repeat([]byte{0x90}, 60000)...),
		"deep":                 bytes.Repeat([]byte{0x91}, 1<<20-100),
		"headers that promise": nested(64 << 10),
		"huge array header":    {0xdd, 0xff, 0xff, 0xff, 0xff},
		"huge map header":      {0xdf, 0xff, 0xff, 0xff, 0xff},
		"huge string header":   {0xdb, 0xff, 0xff, 0xff, 0xff},
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{noN, 1, 60000, 65000} {
				checkCalls(t, fns, payload, n)
			}
		})
	}
}

func fuzzedFunctions(t testing.TB) []*Function {
	t.Helper()
	var fns []*Function
	for _, fn := range fuzzed {
		if named, ok := fn.(*specified); ok {
			fns = append(fns, mustFunction(t, named))
			continue
		}
		fns = append(fns, namedFunction(t, fn))
	}
	return fns
}

func checkCalls(t *testing.T, fns []*Function, payload []byte, n int) {
	t.Helper()
	m := wire.Message{Kind: wire.GoPlain, Path: "test.fn", Payload: payload}
	if n >= 0 {
		m.Kind, m.Meta.HasN, m.Meta.N = wire.GoExtended, true, n
	}
	raw := m.Append(nil)
	limit := uint64(64*len(payload) + 64<<10)
	parsed, err := wire.Parse(raw, wire.Default)
	if err != nil {
		return
	}
	if allocated(func() { callAll(t, fns, &parsed) }) <= limit {
		return
	}
	for i, fn := range fns {
		least := uint64(math.MaxUint64) // other goroutines of the test allocate as well
		for range 5 {
			least = min(least, allocated(func() { callAll(t, fns[i:i+1], &parsed) }))
		}
		if least > limit {
			limits.Errorf(t, "%T allocated %d bytes for a payload of %d", fn.fn.Interface(), least, len(payload))
		}
	}
}

func callAll(t *testing.T, fns []*Function, m *wire.Message) {
	t.Helper()
	for _, fn := range fns {
		result, err := fn.Call(t.Context(), m)
		var wrong *ArgumentError
		if result != nil || err != nil && !errors.As(err, &wrong) {
			t.Errorf("%T: %v, %v", fn.fn.Interface(), result, err)
		}
		if wrong != nil && (wrong.Want == "" || wrong.Got == "" || wrong.Index < -1 ||
			bytes.Contains([]byte(wrong.Got), []byte("decoding fails"))) {
			t.Errorf("%T: %+v", fn.fn.Interface(), *wrong)
		}
	}
}

func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
