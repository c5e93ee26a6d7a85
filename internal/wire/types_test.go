package wire

import (
	"encoding/json"
	"net"
	"reflect"
	"time"
)

// The types that several tests use.
type (
	color  uint8
	label  string
	secs   int64
	flag   bool
	id16   [16]byte
	blob   []byte
	octet  uint8
	octets []octet

	point struct {
		X, Y int
	}
	item struct {
		ID    int
		Name  string `msgpack:"name"`
		Price float64
		Tags  []string `msgpack:",omitempty"`
		note  string   // not in messages
		Skip  chan int `msgpack:"-"`
	}
	order struct {
		ID     int64
		Email  *string
		Items  []item
		Extra  map[string]any `msgpack:"extra,omitempty"`
		Placed time.Time
		Next   *order
	}
	base     struct{ Kind string }
	Owner    struct{ Who string }
	embedded struct {
		Owner
		*Parent
		N int
	}
	Parent struct{ Age uint8 }
	tree   struct {
		V    int
		L, R *tree
	}
	forest []forest
	dict   map[string]dict
	empty  struct{}
	many   struct { // more fields than one word has bits, so that the walker's set of seen fields needs several
		F [3]many8
	}
	many8 struct{ A, B, C, D, E, F, G, H int8 }
	named struct {
		C color
		L label
		S secs
		F flag
		I id16
		B blob
		O octets
	}
	everything struct {
		Bool  bool
		I8    int8
		U64   uint64
		F32   float32
		Str   string
		Bin   []byte
		Arr   [2]int16
		Map   map[int]string
		Any   any
		Time  time.Time
		Ptr   **int
		Keys  map[any]int
		Flags map[bool][]string
	}
)

// targets are the types into which the fuzz test decodes, one of each sort.
var targets = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[int8](), reflect.TypeFor[int](), reflect.TypeFor[uint8](),
	reflect.TypeFor[uint64](),
	reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[string](), reflect.TypeFor[[]byte](),
	reflect.TypeFor[[4]byte](),
	reflect.TypeFor[time.Time](), reflect.TypeFor[any](), reflect.TypeFor[*int](), reflect.TypeFor[[]int](),
	reflect.TypeFor[[]string](),
	reflect.TypeFor[[]any](), reflect.TypeFor[[][]int](), reflect.TypeFor[[3]string](),
	reflect.TypeFor[map[string]int](),
	reflect.TypeFor[map[string]any](), reflect.TypeFor[map[any]any](), reflect.TypeFor[map[int]*point](),
	reflect.TypeFor[point](),
	reflect.TypeFor[order](), reflect.TypeFor[embedded](), reflect.TypeFor[*tree](), reflect.TypeFor[forest](),
	reflect.TypeFor[dict](),
	reflect.TypeFor[empty](), reflect.TypeFor[named](), reflect.TypeFor[everything](), reflect.TypeFor[[]many8](),
	reflect.TypeFor[map[string]string](), reflect.TypeFor[[]float64](), reflect.TypeFor[[]uint16](),
	reflect.TypeFor[map[uint8]bool](),
	reflect.TypeFor[json.RawMessage](), reflect.TypeFor[net.IP](), reflect.TypeFor[[]*[]empty](),
	reflect.TypeFor[map[string][1000]*int](),
}

// ptr returns a pointer to v.
func ptr[T any](v T) *T { return &v }
