package function

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// Types and functions that the tests of functions, arguments and calls share.

const testPath = "github.com/godelayed/delayed/internal/function."

type (
	argUserID   int64
	argLevel    uint8
	argLabel    string
	argFlag     bool
	argRatio    float32
	argIDs      []int64
	argOtherIDs []int64

	argItem struct {
		Name string
		N    int8
	}
	argOrder struct {
		ID    argUserID
		Items []argItem
		Note  *string
	}
	argNested struct {
		ArgBase
		Tags map[string]int
	}
	// ArgBase is exported, so that it is sent when embedded.
	ArgBase struct{ Admin bool }

	argTree struct {
		Kids []argTree
	}
	argChan struct{ C chan int }
)

func fnNone()                                       {}
func fnInt(int)                                     {}
func fnInt8(int8)                                   {}
func fnTwo(int64, string)                           {}
func fnThree(int, *argItem, []int)                  {}
func fnVariadic(...int)                             {}
func fnOneAndVariadic(string, ...int)               {}
func fnAnys(...any)                                 {}
func fnPointers(...*argItem)                        {}
func fnLists(...[]int)                              {}
func fnStruct(argItem)                              {}
func fnPointer(*argItem)                            {}
func fnSlice([]int)                                 {}
func fnMap(map[string]int)                          {}
func fnAny(any)                                     {}
func fnBytes([]byte)                                {}
func fnString(string)                               {}
func fnTime(time.Time)                              {}
func fnUserID(argUserID)                            {}
func fnLabel(argLabel)                              {}
func fnIDs(argIDs)                                  {}
func fnFloat(float64)                               {}
func fnFloat32(float32)                             {}
func fnBool(bool)                                   {}
func fnTree(argTree)                                {}
func fnCtx(context.Context)                         {}
func fnCtxTwo(context.Context, int64, string) error { return nil }
func fnError() error                                { return errTest }
func fnResult(n int) int                            { return n * 2 }
func fnBoth(n int, fail bool) (int, error)          { return n, map[bool]error{true: errTest}[fail] }
func fnMany(int, int8, uint, string, bool, []byte, float64, map[string]any, *int, time.Time, any, []argItem) {
}

func fnTwoResults() (int, string)          { return 0, "" }
func fnThreeResults() (int, string, error) { return 0, "", nil }
func fnErrorFirst() (error, int)           { return nil, 0 } //nolint:revive,staticcheck // refused for this
func fnOwnError() *ArgumentError           { return nil }
func fnChan(chan int)                      {}
func fnFunc(func())                        {}
func fnReader(fmt.Stringer)                {}
func fnCtxLast(int, context.Context)       {} //nolint:revive // a function that is refused for this
func fnVariadicCtx(...context.Context)     {}
func fnChanHolder(argChan)                 {}
func fnChans(...chan int)                  {}
func fnBig([4096]int64)                    {}
func fnGeneric[T any](v T) T               { return v }
func fnLiteral() func(int)                 { n := 0; return func(k int) { n += k } }

var errTest = errors.New("test error")

// testMailer has methods of all sorts. Calls are noted in got.
//
//nolint:recvcheck // receivers of both kinds are tested
type testMailer struct {
	got chan string
}

func (m *testMailer) Send(_ context.Context, id int64) error {
	m.got <- fmt.Sprint("Send ", id)
	return nil
}
func (m testMailer) Copy(to string) { m.got <- "Copy " + to }
func (m *testMailer) Chan(chan int) {}
func (m *testMailer) hidden(int)    {}

type (
	// testPromoter has Send and Copy by embedding.
	testPromoter   struct{ *testMailer }
	testSender     interface{ Copy(string) }
	testNoMethod   struct{}
	testOnlyBad    struct{}
	testByValue    struct{ got chan string }
	testBox[T any] struct{ V T }
)

func (testOnlyBad) Chan(chan int) {}
func (v testByValue) Run(n int)   { v.got <- fmt.Sprint("Run ", n) }
func (b *testBox[T]) Put(v T)     { b.V = v }

// mustFunction makes a function or fails the test.
func mustFunction(t testing.TB, fn any) *Function {
	t.Helper()
	f, err := newFunction(fn)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// namedFunction makes a function of a literal.
func namedFunction(t testing.TB, fn any) *Function {
	t.Helper()
	return mustFunction(t, Func(fn, Name("test.fn")))
}

// goMessage writes a message and parses it, as if it went through Redis.
func goMessage(t testing.TB, path string, payload []byte, n int) *wire.Message {
	t.Helper()
	m := wire.Message{Kind: wire.GoPlain, Path: path, Payload: payload}
	if n >= 0 {
		m.Kind, m.Meta.HasN, m.Meta.N = wire.GoExtended, true, n
	}
	parsed, err := wire.Parse(m.Append(nil), wire.Default)
	if err != nil {
		t.Fatalf("message with payload %x: %v", payload, err)
	}
	return &parsed
}

const noN = -1

type (
	wireList []any      // an array on the wire
	wireDict []wirePair // a map on the wire
	wirePair struct{ K, V any }
)

// packed encodes a value without the codecs under test.
func packed(v any) []byte { return appendPacked(nil, v) }

func appendPacked(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return wire.AppendNil(b)
	case bool:
		return wire.AppendBool(b, v)
	case int:
		return wire.AppendInt(b, int64(v))
	case int64:
		return wire.AppendInt(b, v)
	case uint64:
		return wire.AppendUint(b, v)
	case float64:
		return wire.AppendFloat64(b, v)
	case string:
		return wire.AppendString(b, v)
	case []byte:
		return wire.AppendBin(b, v)
	case time.Time:
		return wire.AppendTime(b, v)
	case wireList:
		b = wire.AppendArrayHeader(b, len(v))
		for _, x := range v {
			b = appendPacked(b, x)
		}
		return b
	case wireDict:
		b = wire.AppendMapHeader(b, len(v))
		for _, x := range v {
			b = appendPacked(appendPacked(b, x.K), x.V)
		}
		return b
	default:
		panic(fmt.Sprintf("pack cannot write a %T", v))
	}
}

var (
	argTime   = time.Date(2026, 11, 21, 1, 2, 3, 4000, time.UTC)
	argTooBig = uint64(math.MaxInt64) + 1
)

func errorText(err error) string { return fmt.Sprint(err) }

type structInner struct {
	B int
	A string `msgpack:"a"`
}

type structOuter struct {
	In   structInner
	List []*structInner
	Any  any
	At   time.Time
	Raw  []byte
}
