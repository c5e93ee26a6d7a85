package wire

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"
)

func TestUnsupported(t *testing.T) {
	type selfPointer *selfPointer
	type onlySkipped struct {
		A int `msgpack:"-"`
	}
	type hidden struct{ _ int }
	type withBase struct {
		base
		X int
	}
	type withBasePointer struct {
		*base
		X int
	}
	type job struct {
		Name string
		Subs []struct{ Done func() }
	}
	type sameKey struct {
		A int `msgpack:"x"`
		B int `msgpack:"x"`
	}
	type sameAsName struct {
		A int `msgpack:"B"`
		B int
	}
	for _, c := range []struct {
		typ  reflect.Type
		want string
	}{
		{reflect.TypeFor[chan int](), "chan int cannot travel in a task: send what is needed"},
		{
			reflect.TypeFor[func()](),
			"func() cannot travel in a task: send what is needed to make it anew; " +
				`keep a field at home with the tag msgpack:"-"`,
		},
		{reflect.TypeFor[complex128](), "complex128 cannot travel in a task: send its two parts as floats"},
		{
			reflect.TypeFor[uintptr](),
			"uintptr cannot travel in a task: another process cannot use an address; for a number use uint64",
		},
		{reflect.TypeFor[unsafe.Pointer](), "unsafe.Pointer cannot travel"},
		{reflect.TypeFor[error](), "error cannot travel in a task: send its text"},
		{
			reflect.TypeFor[context.Context](),
			"context.Context cannot travel in a task: a handler may take one as its first parameter only",
		},
		{
			reflect.TypeFor[fmt.Stringer](),
			"fmt.Stringer cannot travel in a task: only an empty interface (any) or a concrete type",
		},
		{reflect.TypeFor[hidden](), "wire.hidden cannot travel in a task: it has no exported field"},
		{reflect.TypeFor[onlySkipped](), "wire.onlySkipped cannot travel in a task: it has no exported field"},
		{reflect.TypeFor[big.Int](), "big.Int cannot travel in a task: it has no exported field"},
		{reflect.TypeFor[*sync.Mutex](), "sync.Mutex (in *sync.Mutex) cannot travel"},
		{reflect.TypeFor[*time.Location](), "time.Location"},
		{reflect.TypeFor[job](), "func() (in wire.job at .Subs[].Done) cannot travel"},
		{reflect.TypeFor[map[string][2]chan int](), "chan int (in map[string][2]chan int at [][]) cannot travel"},
		{
			reflect.TypeFor[map[float64]int](),
			"map[float64]int cannot travel in a task: keys of a map can be strings, integers or booleans",
		},
		{reflect.TypeFor[map[point]int](), "keys of a map can be strings"},
		{reflect.TypeFor[map[[16]byte]int](), "keys of a map can be strings"},
		{reflect.TypeFor[map[*string]int](), "keys of a map can be strings"},
		{reflect.TypeFor[map[error]int](), "error (in map[error]int at [key]) cannot travel"},
		{reflect.TypeFor[selfPointer](), "it points to itself without end; put a struct in between"},
		{reflect.TypeFor[[]selfPointer](), "it points to itself without end"},
		{
			reflect.TypeFor[withBase](),
			"wire.base (in wire.withBase at .base) cannot travel in a task: the fields of an embedded struct that is " +
				"not exported would be lost",
		},
		{reflect.TypeFor[withBasePointer](), "the fields of an embedded struct that is not exported would be lost"},
		{reflect.TypeFor[sameKey](), `two of its fields have the key "x"`},
		{reflect.TypeFor[sameAsName](), `two of its fields have the key "B"`},
	} {
		for range 2 { // CodecFor must not store a codec for a refused type
			codec, err := CodecFor(c.typ)
			var ue *UnsupportedError
			if codec != nil || !errors.As(err, &ue) || ue.Type != c.typ || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v: got %v, want %q", c.typ, err, c.want)
			}
		}
	}
}

func TestSupportedOddities(t *testing.T) {
	type nothing struct{ x int }
	type hiddenMiddle struct {
		nothing // without exported fields nothing is lost
		base    `msgpack:"-"`
		X       int
	}
	type viaStruct struct{ P *viaStruct }
	type ifaces struct{ A, B any }
	for _, typ := range []reflect.Type{
		reflect.TypeFor[hiddenMiddle](), reflect.TypeFor[viaStruct](), reflect.TypeFor[ifaces](),
		reflect.TypeFor[***int](), reflect.TypeFor[[0]point](),
		reflect.TypeFor[time.Duration](), reflect.TypeFor[map[any]int](), reflect.TypeFor[struct{}](),
		reflect.TypeFor[*any](),
	} {
		if _, err := CodecFor(typ); err != nil {
			t.Errorf("%v: %v", typ, err)
		}
	}
	if got := hex.EncodeToString(encode(t, hiddenMiddle{nothing{1}, base{"k"}, 7})); got != "81a15807" {
		t.Errorf("got %s", got)
	}
}

// CodecFor makes one codec for a type, even if several goroutines ask at the same time.
func TestCodecForConcurrently(t *testing.T) {
	type fresh struct {
		Self *fresh
		More map[string][]fresh
		Name string
	}
	const askers = 8
	got := make([]*Codec, askers)
	var start, done sync.WaitGroup
	start.Add(1)
	for i := range askers {
		done.Go(func() {
			start.Wait()
			c, err := CodecFor(reflect.TypeFor[fresh]())
			if err != nil {
				t.Error(err)
				return
			}
			got[i] = c
			v := fresh{Name: "n", More: map[string][]fresh{"k": {{Name: "m"}}}}
			b, err := c.Append(nil, reflect.ValueOf(v))
			if err != nil {
				t.Error(err)
				return
			}
			var back fresh
			if _, err := c.Decode(b, reflect.ValueOf(&back).Elem()); err != nil || !reflect.DeepEqual(v, back) {
				t.Errorf("%+v, %v", back, err)
			}
		})
	}
	start.Done()
	done.Wait()
	for _, c := range got {
		if c != got[0] {
			t.Error("two codecs for one type")
		}
	}
}

// want names each type in errors.
func TestWant(t *testing.T) {
	for typ, want := range map[reflect.Type]string{
		reflect.TypeFor[int8](): "int8", reflect.TypeFor[[]byte](): "[]uint8 (binary)",
		reflect.TypeFor[id16]():   "wire.id16 (binary of 16 bytes)",
		reflect.TypeFor[*point](): "wire.point (map, or array of 2 values) or nil", reflect.TypeFor[**int](): "**int",
		reflect.TypeFor[*Parent](): "wire.Parent (map, or array of 1 value) or nil",
		reflect.TypeFor[dict]():    "wire.dict (map)", reflect.TypeFor[[1]int](): "[1]int (array of 1 value)",
		reflect.TypeFor[time.Time](): "time.Time (timestamp)",
	} {
		if got := codecOf(t, typ).node.want(); got != want {
			t.Errorf("%v: %q, want %q", typ, got, want)
		}
	}
}

// Found names the kinds of bytes in errors.
func TestFound(t *testing.T) {
	for in, want := range map[string]string{
		"": "the end of the bytes", "07": "integer", "ff": "integer", "cfffffffffffffffff": "integer",
		"d38000000000000000": "integer",
		"ca3fc00000":         "float", "cb7ff0000000000000": "float", "a0": "string of 0 bytes",
		"a161": "string of 1 byte", "c400": "binary of 0 bytes", "9101": "array of 1 value",
		"810102": "map of 1 pair", "c0": "nil", "c2": "boolean", "c3": "boolean",
		"c1": "byte 0xc1, which MessagePack never uses", "d6ff00000000": "timestamp",
		"d6ff0000": "timestamp that is out of range or cut off", "d401aa": "extension type 1",
		"c70105aa": "extension type 5", "c80001f0aa": "extension type -16", "c9": "extension that is cut off",
		"a3": "string that is cut off", "da00": "string that is cut off", "c5": "binary that is cut off",
		"91": "array that is cut off", "dd0000": "array that is cut off",
		"8101": "map that is cut off", "de": "map that is cut off", "ca": "float that is cut off",
		"cd00": "integer that is cut off", "d3": "integer that is cut off", "d0": "integer that is cut off",
	} {
		if got := Found(unhex(t, in)); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
