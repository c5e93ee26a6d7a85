package signature_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/seam"
	"github.com/godelayed/delayed/internal/signature"
)

var update = flag.Bool("update", false, "write the golden file")

// golden is the file that the tests of the Python package read.
const golden = "../../python-compat/tests/stubs/functions.json"

// Every kind of type, and names that Python does not allow.
type (
	Address struct {
		Street  string `msgpack:"street"`
		ZIPCode string `msgpack:"zip-code"`
		Class   *int8  `msgpack:"class"`
		private int    //nolint:unused // that it stays at home is what is tested
	}
	Order struct {
		ID       uint64
		Billing  Address
		Shipping *Address
		Lines    []Line
		Placed   time.Time
		Photo    []byte            `msgpack:"photo,omitempty"`
		Tags     map[string]string `msgpack:"tags,omitempty"`
		Note     string            `msgpack:"note,omitempty"`
	}
	Line struct {
		Article string
		Price   float64
	}
	Tree struct {
		Value       int
		Left, Right *Tree
	}
	Forest         []Forest
	Empty          struct{}
	Pair[A, B any] struct {
		First  A
		Second B
	}
)

func welcome(context.Context, int64, string) error           { return nil }
func place(_ context.Context, order Order) (uint64, error)   { return order.ID, nil }
func digest(userID int64, from time.Time, tagIDs ...string)  {}
func scale(photo [16]byte, width, height uint16, far *bool)  {}
func anything(v any, m map[int][]any, keep bool) any         { return nil }
func grow(tree *Tree, in Forest, none Empty) map[string]Tree { return nil }
func pair(Pair[int, Line]) Pair[string, *Order]              { panic("") }
func unnamed(opts struct{ Deep struct{ Fast bool } }) [2]int { return [2]int{} }
func keyword(class, self, from int, lambda float32) []byte   { return nil }
func late(a int, b string, c []string)                       {}
func spread(
	ctx context.Context,
	first string,
	rest ...*Line,
) (*Order, error) {
	return nil, nil
}

func generic[T any](of T) T { return of }

func inner() func(int, string) error {
	return func(number int, _ string) error {
		return nil
	}
}

// Two functions on one line.
var twin, other = func(a int) {}, func(b int) {}

// What a pointer has from the methods of its type is declared elsewhere.
//
//nolint:recvcheck // on purpose
type mailer struct{ from string }

func (m *mailer) Send(_ context.Context, to string) error { return nil }
func (m mailer) SendHTML(to, body string) int             { return len(m.from) }
func (m *mailer) Close(chan int)                          {}

func functions(t *testing.T) (infos []function.Info) {
	t.Helper()
	rdb, err := delayed.Dial("redis://localhost:1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{Queues: delayed.Strict{"q"}})
	if err != nil {
		t.Fatal(err)
	}
	named := func(path string, fn any, opts ...delayed.FuncOption) *delayed.Function {
		return delayed.Func(fn, append(opts, delayed.Name(path))...)
	}
	if err := w.Register(
		named("example.com/app/mail.Welcome", welcome, delayed.Alias("example.com/app/letters.Welcome")),
		named("example.com/app/mail.Place", place),
		named("example.com/app/mail.Digest", digest),
		named("example.com/photos/v2.Scale", scale),
		named("example.com/app/any.Anything", anything),
		named("example.com/app/tree.Grow", grow),
		named("example.com/other/mail.Pair", pair),
		named("gopkg.in/mail.v3.Unnamed", unnamed),
		named("sum.int", keyword),
		named("late", late, delayed.Optional(2)),
		named("example.com/app/mail.Spread", spread, delayed.Optional(1)),
		named("example.com/app/mail.Literal", func(n int) int { return n }),
		named("example.com/app/mail.Generic", generic[int]),
		named("example.com/app/mail.Value", (&mailer{}).Send),
		named("example.com/app/mail.Inner", inner()),
		named("example.com/app/mail.Twins", twin),
		named("example.com/app/mail.Nothing", func() {}),
		named("example.com/app/mail.Thing", func() error { return nil }),
		named("example.com/app/mail.Odd", func() chan int { return nil }),
	); err != nil {
		t.Fatal(err)
	}
	other(0)
	if err := w.RegisterMethods(&mailer{}); err != nil {
		t.Fatal(err)
	}
	return seam.Functions(w).([]function.Info) //nolint:errcheck // by contract
}

func TestGolden(t *testing.T) {
	var got bytes.Buffer
	if err := signature.Write(&got, functions(t)); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s is not what is written; if that is right run go test ./internal/signature -update, and the "+
			"tests of python-compat with --update. Found:\n%s",
			golden, got.String())
	}
}

// If the source is unknown, parameters have no names, and nothing else changes.
func TestWithoutSource(t *testing.T) {
	all := functions(t)
	for i := range all {
		all[i].Func = nil
	}
	got, want := decoded(t, all), decoded(t, functions(t))
	names := 0
	for _, f := range want.Functions {
		for i := range f.Parameters {
			if f.Parameters[i].Name != "" {
				names++
				f.Parameters[i].Name = ""
			}
		}
	}
	if names == 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("%d names; found %v, expected %v", names, got, want)
	}
}

// written is the output of Write.
type written struct {
	Functions []struct {
		Path       string
		Aliases    []string
		Variadic   bool
		Optional   int
		Parameters []struct {
			Name, Go string
			Type     any
		}
		Result any
	}
	Types any
}

func decoded(t *testing.T, infos []function.Info) (out written) {
	t.Helper()
	var b bytes.Buffer
	if err := signature.Write(&b, infos); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
