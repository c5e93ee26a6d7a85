package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/godelayed/delayed/internal/limits"
)

// pack writes a value for tests; strings beginning with "hex:" stand for raw bytes.
func pack(t testing.TB, v any) []byte {
	t.Helper()
	b, err := appendAny(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// appendAny appends v by its dynamic type.
func appendAny(dst []byte, v any) ([]byte, error) {
	c, err := CodecFor(reflect.TypeFor[any]())
	if err != nil {
		return dst, err
	}
	return c.Append(dst, reflect.ValueOf(&v).Elem())
}

// isWhole checks that x has a value for each field, and that docs/PROTOCOL.md and the vectors, which the tests of the
// Python package read too, have the key of each.
func isWhole(t *testing.T, x *Extra) {
	t.Helper()
	for v, i := reflect.ValueOf(*x), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("the full message has no %s", v.Type().Field(i).Name)
		}
	}
	var w MapWriter
	w.Begin(nil)
	x.write(&w)
	pairs, _, err := DecodeAny(w.End())
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		"docs/PROTOCOL.md": "\n| `%s` |", "testdata/wire/messages.json": `"%s": `,
	} {
		page, err := os.ReadFile(filepath.Join("..", "..", file))
		for key := range as[map[string]any](t, pairs) {
			if err != nil || !bytes.Contains(page, fmt.Appendf(nil, text, key)) {
				t.Errorf("%s lacks the key %q: %v", file, key, err)
			}
		}
	}
}

// Append writes and Parse reads every form of message. testdata/wire has the same forms as bytes that other programs
// wrote.
func TestMessageRoundTrip(t *testing.T) {
	full := Meta{
		ID: "01hz", HasN: true, N: 2, EnqueuedAt: 1700000000123, HasMaxRetry: true, MaxRetry: 5, Retried: 1, Deaths: 2,
		DiedAt: 1700000000999,
		Rest:   &Pairs{2, []byte("\xa1q\xa3abc\xa2zz\x07")},
		Extra: &Extra{
			Timeout: 1, Deadline: 2, Expiry: 3, Retention: 4, KeepResult: 5, RetryDelays: []int64{0, 7, 1 << 40},
			RetryUntil: 6, RetryCap: 7, FirstFailed: 9, Due: 10, AloneDeaths: 1, Failures: []byte{0x90}, Lock: "l",
			LockLife: 8, LockStart: true, Group: "g", Gather: &Gather{1, 60_000, 1 << 40, 1000},
			Headers: map[string]string{"b": "2", "a": "", "": "1"},
		},
	}
	isWhole(t, full.Extra)
	for _, m := range []Message{
		{Kind: GoBare, Path: "main.f"},
		{Kind: GoPlain, Path: "main.f"},
		{Kind: GoPlain, Path: "main.f", Payload: []byte{7}},
		{Kind: GoPlain, Path: "main.f", Payload: []byte{}},
		{Kind: GoPlain, Path: "example.com/app/mail.(*Mailer).Send", Payload: pack(t, []any{1, "two", 3.5, nil})},
		{Kind: GoPlain, Path: strings.Repeat("p", 512), Payload: pack(t, strings.Repeat("x", 70000))},
		{Kind: GoExtended, Path: "main.f"},
		{Kind: GoExtended, Path: "main.f", Payload: []byte{0x91, 7}, Meta: Meta{HasN: true, N: 1}},
		{Kind: GoExtended, Path: "main.f", Payload: []byte{0xc0}, Meta: full},
		{Kind: GoExtended, Path: "main.f", Meta: Meta{HasN: true, HasMaxRetry: true}},
		{Kind: GoExtended, Path: "main.f", Meta: Meta{HasMaxRetry: true, MaxRetry: -1}},
		{Kind: GoExtended, Path: "main.f", Meta: Meta{Rest: &Pairs{1, []byte("\xa1x\xc0")}}},
		{Kind: Py, Path: "m:f"},
		{Kind: Py, Path: "m:f", Py: &PyCall{Args: []byte{0x92, 1, 2}}},
		{Kind: Py, Path: "m:f", Py: &PyCall{Args: []byte{0x90}, Kwargs: []byte("\x81\xa1a\x01")}},
		{Kind: Py, Path: "m:f", Py: &PyCall{Args: []byte{0x91, 1}, Kwargs: []byte("\x81\xa1a\x01")}},
		{Kind: Py, Path: "m:f", Py: &PyCall{Args: []byte{0x90}, Kwargs: []byte{0x80}}, Retry: 3},
		{Kind: Py, Path: "m:f", Py: &PyCall{Args: []byte{0xc0}, Kwargs: []byte{0xc0}}, Retry: -1},
		{
			Kind: Py, Path: "m:f", Py: &PyCall{Args: []byte{0x91, 0x81, 0xc0, 0xd4, 5, 6}, Kwargs: []byte{0x80}},
			Retry: math.MinInt64,
		},
		{Kind: PyExtended, Path: "m:f", Py: &PyCall{Args: []byte{0x90}, Kwargs: []byte{0x80}}},
		{
			Kind: PyExtended, Path: "m:f", Py: &PyCall{Args: []byte{0x91, 1}, Kwargs: []byte{0x80}},
			Retry: math.MaxInt64,
			Meta:  full,
		},
	} {
		raw := m.Append([]byte("before"))
		if !bytes.HasPrefix(raw, []byte("before")) {
			t.Fatalf("%+v: Append lost what stood before", m)
		}
		raw = raw[len("before"):]
		got, err := Parse(raw, Default)
		if err != nil {
			t.Errorf("%+v: %v", m, err)
			continue
		}
		if !reflect.DeepEqual(got, m) {
			t.Errorf("%x:\n got %+v\nwant %+v", raw, got, m)
		}
		if m.Python() != strings.Contains(m.Path, ":") {
			t.Errorf("%+v: Python() = %v", m, m.Python())
		}
		for n := range raw {
			if _, err := Parse(raw[:n], Default); err == nil {
				t.Errorf("%x: accepted its first %d bytes", raw, n)
			}
			if n > 100 { // the long ones are strings inside
				break
			}
		}
		if _, err := Parse(append(bytes.Clone(raw), 0xc0), Default); err == nil {
			t.Errorf("%x: accepted a byte behind it", raw)
		}
	}
}

// Forms of messages that others send and that Append writes differently.
func TestMessageNormalized(t *testing.T) {
	for _, c := range []struct{ name, in, out string }{
		{"path alone in an array", "91a166", "92a166c0"},
		{"wide headers", "dd00000002db0000000166c60000000107", "92a166c40107"},
		{"python without anything", "94a36d3a669080" + "00", "91a36d3a66"},
		{"python with nil for arguments, as go-delayed sends it", "93a36d3a66c0c0", "91a36d3a66"},
		{"python with arguments and nil", "93a36d3a669101c0", "92a36d3a669101"},
	} {
		m, err := Parse(unhex(t, c.in), Default)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := hex.EncodeToString(m.Append(nil)); got != c.out {
			t.Errorf("%s: %s, want %s", c.name, got, c.out)
		}
	}
	m := Message{Kind: PyExtended, Path: "m:f"}
	if got := hex.EncodeToString(m.Append(nil)); got != "95a36d3a6690800080" {
		t.Errorf("extended Python task without arguments: %s", got)
	}
}

func TestParseRefuses(t *testing.T) {
	str := func(s string) string { return hex.EncodeToString(AppendString(nil, s)) }
	for _, c := range []struct{ name, in, want string }{
		{"nothing", "", "at byte 0: expected an array or a function path, found the end of the bytes"},
		{"a number", "07", "expected an array or a function path, found integer"},
		{"a map", "80", "expected an array or a function path, found map of 0 pairs"},
		{"an empty array", "90", "at byte 0: expected an array that begins with a function path, found an empty one"},
		{
			"a path behind an empty array", "90a166",
			"expected an array that begins with a function path, found an empty one",
		},
		{"a path that is no string", "9207c0", "at byte 1: expected a function path, found integer"},
		{"a path that is binary", "91c40166", "at byte 1: expected a function path, found binary of 1 byte"},
		{"an empty path", "91a0", "at byte 1: expected a function path, found an empty string"},
		{"an empty bare path", "a0", "at byte 0: expected a function path, found an empty string"},
		{
			"a path of 513 bytes", "91" + str(strings.Repeat("p", 513)),
			"expected a path of at most 512 bytes, found string of 513 bytes",
		},
		{"a path that is not UTF-8", "91a2fffe", "expected a path in UTF-8"},
		{"a bare Python path", str("m:f"), "expected an array around the path of a Python function"},
		{"something behind a bare path", "a166c0", "at byte 2: expected the end, found 1 byte more"},
		{
			"four elements for Go", "94a166c080c0",
			"expected an array of 1 to 3 for a Go function, found array of 4 values",
		},
		{
			"six elements for Python", "96a36d3a66908000800000"[:22],
			"expected an array of 1 to 5 for a Python function, found array of 6 values",
		},
		{
			"a payload that is a string", "92a166a107",
			"at byte 3: expected a payload: binary or nil, found string of 1 byte",
		},
		{"a payload that is an array", "92a1669107", "expected a payload: binary or nil, found array of 1 value"},
		{
			"a payload that is cut off", "92a166c40507",
			"expected a payload: binary or nil, found binary that is cut off",
		},
		{"a payload of two values", "92a166c4020708", "at byte 6: expected the end, found 1 byte more"},
		{
			"a payload that ends early", "92a166c4029201",
			"at byte 5: expected a whole value, found array that is cut off",
		},
		{
			"a payload with a foreign extension", "92a166c403d40100",
			"at byte 5: expected a value, with timestamps as the only extension",
		},
		{
			"a payload with a nil key", "92a166c40381c001",
			"at byte 6: expected a string, integer or boolean as map key, found nil",
		},
		{"meta that is nil", "93a166c0c0", "at byte 4: expected meta: a map, found nil"},
		{"meta that is an array", "93a166c090", "expected meta: a map, found array of 0 values"},
		{"meta with a number as key", "93a166c0810101", "at byte 5: expected a string as key of meta, found integer"},
		{
			"meta with a key twice", "93a166c082a16e01a16e01",
			`at byte 8: expected each key of meta once, found "n" again`,
		},
		{"meta that ends early", "93a166c082a16e01", "meta: a map, found map that is cut off"},
		{
			"an id that is a number", "93a166c081a2696407",
			"expected an id: a string of 1 to 512 bytes in UTF-8, found integer",
		},
		{"an empty id", "93a166c081a26964a0", "expected an id"},
		{"an id of 513 bytes", "93a166c081a26964" + str(strings.Repeat("i", 513)), "expected an id"},
		{"an id that is not UTF-8", "93a166c081a26964a1ff", "expected an id"},
		{
			"n that is a string", "93a166c081a16ea131",
			`expected "n" to be an integer from 0 to 2147483647, found string of 1 byte`,
		},
		{"n below zero", "93a166c081a16eff", `expected "n" to be an integer from 0`},
		{"n that is nil", "93a166c081a16ec0", `expected "n" to be an integer`},
		{
			"n that is a float", "93a166c081a16ecb3ff0000000000000",
			`expected "n" to be an integer from 0 to 2147483647, found float`,
		},
		{"n of 2^31", "93a166c081a16ece80000000", "found integer"},
		{"n of 2^64-1", "93a166c081a16ecfffffffffffffffff", "found integer"},
		{
			"mr below the int32 range", "93a166c081a26d72d3ffffffff7fffffff",
			`expected "mr" to be an integer from -2147483648`,
		},
		{
			"mr of 2^64-1, which is not -1", "93a166c081a26d72cfffffffffffffffff",
			`expected "mr" to be an integer from -2147483648 to 2147483647, found integer`,
		},
		{"rt below zero", "93a166c081a27274ff", `expected "rt"`},
		{"d below zero", "93a166c081a164ff", `expected "d"`},
		{"at below zero", "93a166c081a26174ff", `expected "at" to be an integer from 0 to 92`},
		{"da of 2^63", "93a166c081a26461cf8000000000000000", `expected "da" to be an integer from 0 to 92`},
		{"an unknown key without a value", "93a166c081a178c1", "expected a value, found byte 0xc1"},
		{
			"an unknown key too deep", "93a166c081a178" + strings.Repeat("91", 31) + "c0",
			"expected at most 30 arrays and maps",
		},
		{
			"arguments that are a number", "92a36d3a6607",
			"at byte 5: expected arguments: an array or nil, found integer",
		},
		{"arguments that are a map", "92a36d3a6680", "expected arguments: an array or nil, found map of 0 pairs"},
		{"arguments cut off", "92a36d3a669201", "expected arguments: an array or nil, found array that is cut off"},
		{"arguments cut off inside", "92a36d3a6691a561", "found string that is cut off"},
		{"arguments too deep", "92a36d3a66" + strings.Repeat("91", 31) + "90", "expected at most 31 arrays and maps"},
		{
			"keyword arguments that are an array", "93a36d3a669090",
			"expected keyword arguments: a map or nil, found array of 0 values",
		},
		{"keyword arguments cut off inside", "93a36d3a669081a161a56162", "found string that is cut off"},
		{"retry that is a string", "94a36d3a669080a133", "expected a number of retries, found string of 1 byte"},
		{"retry that is a boolean", "94a36d3a669080c3", "expected a number of retries, found boolean"},
		{"retry of 2^63", "94a36d3a669080cf8000000000000000", "expected a number of retries"},
		{"Python meta that is nil", "95a36d3a66908000c0", "expected meta: a map, found nil"},
		{"something behind a Python task", "92a36d3a669000", "at byte 6: expected the end"},
		{"something behind a Go task", "92a166c000", "at byte 4: expected the end"},
	} {
		m, err := Parse(unhex(t, c.in), Default)
		var fe *FormatError
		if !errors.As(err, &fe) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s (%s): got %v, want %q", c.name, c.in, err, c.want)
		}
		if !reflect.DeepEqual(m, Message{}) {
			t.Errorf("%s: got %+v beside the error", c.name, m)
		}
	}
}

func TestParseLimits(t *testing.T) {
	args := func(n int) []byte { return append(AppendArrayHeader(nil, n), make([]byte, n)...) }
	py := func(n int, k Kind, rest int) []byte {
		m := Message{Kind: k, Path: "m:f", Py: &PyCall{Args: args(n), Kwargs: []byte{0x80}}, Retry: 1}
		if rest > 0 {
			m.Meta.Rest = &Pairs{rest, bytes.Repeat([]byte("\xa1x\x90"), rest)}
		}
		return m.Append(nil)
	}
	ext := func(rest int) []byte {
		m := Message{
			Kind: GoExtended, Path: "f",
			Meta: Meta{Rest: &Pairs{rest, bytes.Repeat([]byte("\xa1x\x90"), rest)}},
		}
		return m.Append(nil)
	}
	nested := (&Message{
		Kind: GoExtended, Path: "f",
		Meta: Meta{Rest: &Pairs{1, []byte("\xa1x\x93\x01\x02\x03")}},
	}).Append(nil)
	plain := func(payload []byte) []byte { return (&Message{Kind: GoPlain, Path: "f", Payload: payload}).Append(nil) }
	elems := func(n int) Limits { return Limits{Bytes: 1 << 20, Elems: n, Depth: 32, Path: 512} }
	for _, c := range []struct {
		name string
		in   []byte
		lim  Limits
		ok   bool
	}{
		{"payload of 65,536 values", plain(args(65535)), Default, true},
		{"payload of 65,537 values", plain(args(65536)), Default, false},
		{"payload 32 deep", plain(append(bytes.Repeat([]byte{0x91}, 32), 0)), Default, true},
		{"payload 33 deep", plain(append(bytes.Repeat([]byte{0x91}, 33), 0)), Default, false},
		{"Python: 65,536 values in all", py(65536-6, Py, 0), Default, true}, // array, path, args, kwargs, retry
		{"Python: 65,537 values in all", py(65537-5, Py, 0), Default, false},
		{"Python: arguments leave nothing for meta", py(10, PyExtended, 0), elems(15), false},
		{"Python: arguments leave room for meta", py(10, PyExtended, 0), elems(16), true},
		{"Python: arguments leave no room for what is in meta", py(10, PyExtended, 1), elems(17), false},
		{"Python: arguments leave room for what is in meta", py(10, PyExtended, 1), elems(18), true},
		{"meta within", ext(3), elems(10), true},
		{"meta beyond", ext(3), elems(9), false},
		{"values inside an unknown one, within", nested, elems(9), true},
		{"values inside an unknown one, beyond", nested, elems(8), false},
		{"too few for the array", plain(nil), elems(2), false},
		{"enough for the array", plain(nil), elems(3), true},
		{"path as long as allowed", []byte("\xa3abc"), Limits{Bytes: 4, Elems: 1, Depth: 1, Path: 3}, true},
		{"path too long", []byte("\xa3abc"), Limits{Bytes: 4, Elems: 1, Depth: 1, Path: 2}, false},
		{"message too long", []byte("\xa3abc"), Limits{Bytes: 3, Elems: 1, Depth: 1, Path: 3}, false},
	} {
		_, err := Parse(c.in, c.lim)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, _, skimErr := skim(c.in, 0, c.lim.Elems, c.lim.Depth, loose); err == nil && skimErr != nil {
			t.Errorf("%s: Parse accepts what the checker refuses: %v", c.name, skimErr)
		}
	}
}

func TestParseAllocatesNothingForGo(t *testing.T) {
	limits.Only(t)
	m := Message{
		Kind: GoExtended, Path: "example.com/app/mail.Send", Payload: pack(t, []any{42, "en"}),
		Meta: Meta{ID: "0123456789abcdef", HasN: true, N: 2, EnqueuedAt: 1, HasMaxRetry: true, MaxRetry: 3},
	}
	raw := m.Append(nil)
	bare, plain := []byte("\xa6main.f"), []byte("\x92\xa6main.f\xc4\x01\x07")
	if n := testing.AllocsPerRun(100, func() {
		for _, raw := range [][]byte{raw, bare, plain} {
			if _, err := Parse(raw, Default); err != nil {
				t.Fatal(err)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Appending to a part of a parsed message must not overwrite what follows that part in the raw bytes.
func TestParsedPartsDoNotGrowIntoRaw(t *testing.T) {
	m := Message{
		Kind: GoExtended, Path: "f", Payload: []byte{7},
		Meta: Meta{Rest: &Pairs{1, []byte("\xa1x\x01")}, ID: "a"},
	}
	py := Message{
		Kind: PyExtended, Path: "m:f", Py: &PyCall{Args: []byte{0x91, 1}, Kwargs: []byte{0x80}},
		Meta: Meta{Rest: &Pairs{1, []byte("\xa1x\x01")}, ID: "a"},
	}
	for _, raw := range [][]byte{m.Append(nil), py.Append(nil)} {
		before := bytes.Clone(raw)
		got, err := Parse(raw, Default)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range [][]byte{got.Payload, got.Args(), got.Kwargs(), got.Meta.Rest.Raw} {
			_ = append(part, 0xee)
		}
		if !bytes.Equal(raw, before) {
			t.Errorf("raw changed from %x to %x", before, raw)
		}
	}
}

// Parse and Append keep unknown keys of meta, wherever they stand among the known ones.
func TestMetaKeepsUnknownKeys(t *testing.T) {
	const id, n, a, b, c = "\xa2id\xa1X", "\xa1n\x02", "\xa1a\x93\x01\x02\x03", "\xa1b\xc0",
		"\xa1c\x81\xa1k\xd6\xff\x00\x00\x00\x01"
	for _, meta := range []string{
		a + b + c + id + n, id + n + a + b + c, a + id + b + n + c, id + a + b + n + c, a + b + id + c + n,
		a + id + n + b + c,
	} {
		in := append([]byte("\x93\xa1f\xc0\x85"), meta...)
		m, err := Parse(in, Default)
		if err != nil {
			t.Fatalf("%q: %v", meta, err)
		}
		if string(m.Meta.Rest.Raw) != a+b+c || m.Meta.Rest.N != 3 || m.Meta.ID != "X" || m.Meta.N != 2 {
			t.Errorf("%q: got %+v", meta, m.Meta)
		}
		m.Meta.Deaths++
		if got, want := string(m.Append(nil)), "\x93\xa1f\xc0\x86"+id+n+"\xa1d\x01"+a+b+c; got != want {
			t.Errorf("%q: written again as %q, want %q", meta, got, want)
		}
	}
}

// Parse copies a pair that only seems adjacent to the unknown pairs before it, because those are already copies.
func TestMetaKeepAfterCopy(t *testing.T) {
	in := []byte("\x93\xa1f\xc0\x84\xa1a\x01\xa1n\x00\xa1b\x02\xa1c\x03")
	m, err := Parse(in, Default)
	if err != nil || string(m.Meta.Rest.Raw) != "\xa1a\x01\xa1b\x02\xa1c\x03" || m.Meta.Rest.N != 3 {
		t.Errorf("got %q, %d, %v", m.Meta.Rest.Raw, m.Meta.Rest.N, err)
	}
}

func TestExtend(t *testing.T) {
	for from, to := range map[Kind]Kind{
		GoBare: GoExtended, GoPlain: GoExtended, GoExtended: GoExtended, Py: Py,
		PyExtended: PyExtended,
	} {
		m := Message{Kind: from}
		if m.Extend(); m.Kind != to {
			t.Errorf("%v became %v, want %v", from, m.Kind, to)
		}
	}
	m, err := Parse([]byte("\xa1f"), Default)
	if err != nil {
		t.Fatal(err)
	}
	m.Extend()
	m.Meta.Deaths = 1
	if got := string(m.Append(nil)); got != "\x93\xa1f\xc0\x81\xa1d\x01" {
		t.Errorf("got %q", got)
	}
}

func TestAppendPanicsOnMistakes(t *testing.T) {
	for _, m := range []Message{
		{Path: "f"},
		{Kind: 99, Path: "f"},
		{Kind: GoPlain, Path: "f", Meta: Meta{ID: "x"}},
		{Kind: GoBare, Path: "f", Meta: Meta{HasN: true}},
		{Kind: GoBare, Path: "f", Payload: []byte{1}},
		{Kind: Py, Path: "m:f", Meta: Meta{Deaths: 1}},
	} {
		func() {
			defer func() {
				if p := recover(); p == nil || !strings.HasPrefix(fmt.Sprint(p), "wire: ") {
					t.Errorf("%+v: recovered %v", m, p)
				}
			}()
			m.Append(nil)
		}()
	}
}

func TestKindString(t *testing.T) {
	for k, want := range map[Kind]string{
		0: "no kind", GoBare: "bare Go task", PyExtended: "extended Python task",
		77: "kind 77",
	} {
		if got := k.String(); got != want {
			t.Errorf("%d: %q", k, got)
		}
	}
}
