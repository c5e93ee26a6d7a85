package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/limits"
)

// vector is an entry of a file in testdata/wire; its README.md describes the fields.
type vector struct {
	Name    string
	By      []string
	Hex     string
	Parts   [][2]any
	Kind    string
	Path    string
	Payload json.RawMessage
	Args    json.RawMessage
	Kwargs  json.RawMessage
	Retry   int64
	Meta    json.RawMessage
	Unknown []string
	Writes  string
	Foreign bool
	Type    string
	Value   json.RawMessage
	Error   string
	As      string
}

// golden reads the vectors of a file.
func golden(t *testing.T, file string) []vector {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "wire", file))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Vectors []vector }
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	names := map[string]bool{}
	for _, v := range doc.Vectors {
		if names[v.Name] || v.Name == "" {
			t.Errorf("%s: the name %q is missing or there twice", file, v.Name)
		}
		names[v.Name] = true
	}
	if len(doc.Vectors) < 20 {
		t.Fatalf("%s: only %d vectors", file, len(doc.Vectors))
	}
	return doc.Vectors
}

// raw returns the bytes of a vector.
func (v *vector) raw(t *testing.T) []byte {
	t.Helper()
	if v.Parts == nil {
		return unhex(t, v.Hex)
	}
	var b []byte
	for _, p := range v.Parts {
		b = append(b, bytes.Repeat(unhex(t, as[string](t, p[0])), int(as[float64](t, p[1])))...)
	}
	return b
}

// written returns the bytes, in hexadecimal, that Go must write for the value that it has read.
func (v *vector) written() string {
	if v.Writes != "" {
		return v.Writes
	}
	return v.Hex
}

// as returns v, which must be a T.
func as[T any](t *testing.T, v any) T {
	t.Helper()
	x, ok := v.(T)
	if !ok {
		t.Fatalf("%v is a %T, want a %T", v, v, x)
	}
	return x
}

// untag turns a value in the notation of README.md into what DecodeAny returns for it.
func untag(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return untagValue(t, v)
}

func untagValue(t *testing.T, v any) any {
	t.Helper()
	switch v := v.(type) {
	case json.Number:
		if !strings.ContainsAny(v.String(), ".eE") {
			if n, err := v.Int64(); err == nil {
				return n
			}
			var n uint64
			if _, err := fmt.Sscan(v.String(), &n); err != nil {
				t.Fatal(err)
			}
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
			out[i] = untagValue(t, v[i])
		}
		return out
	case map[string]any:
		return untagMap(t, v)
	}
	return v
}

func untagMap(t *testing.T, m map[string]any) any {
	t.Helper()
	if s, ok := m["$bin"]; ok {
		b, err := hex.DecodeString(as[string](t, s))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if p, ok := m["$time"]; ok {
		parts := as[[]any](t, untagValue(t, p))
		return time.Unix(as[int64](t, parts[0]), as[int64](t, parts[1])).UTC()
	}
	if s, ok := m["$float"]; ok {
		return map[string]float64{"nan": math.NaN(), "inf": math.Inf(1), "-inf": math.Inf(-1)}[as[string](t, s)]
	}
	if p, ok := m["$map"]; ok {
		out := map[any]any{}
		for _, pair := range as[[]any](t, p) {
			kv := as[[]any](t, untagValue(t, pair))
			out[kv[0]] = kv[1]
		}
		return out
	}
	out := map[string]any{}
	for k, e := range m {
		out[k] = untagValue(t, e)
	}
	return out
}

// agrees checks that b holds the value that a vector gives; part names that part of the vector in failures.
func agrees(t *testing.T, name, part string, b []byte, want json.RawMessage) {
	t.Helper()
	if len(want) == 0 {
		if len(b) != 0 {
			t.Errorf("%s: %s %x, want none", name, part, b)
		}
		return
	}
	got, rest, err := DecodeAny(b)
	if err != nil || len(rest) != 0 {
		t.Errorf("%s: %s %x: %x left over, %v", name, part, b, rest, err)
		return
	}
	if w := untag(t, want); !equal(reflect.ValueOf(&got).Elem(), reflect.ValueOf(&w).Elem()) {
		t.Errorf("%s: %s is %#v, want %#v", name, part, got, w)
	}
}

func TestGoldenMessages(t *testing.T) {
	kinds := map[string]Kind{
		"go-bare": GoBare, "go-plain": GoPlain, "go-extended": GoExtended, "py": Py,
		"py-extended": PyExtended,
	}
	seen := map[Kind]bool{}
	for _, v := range append(golden(t, "messages.json"), golden(t, "keakon.json")...) {
		raw := v.raw(t)
		m, err := Parse(raw, Default)
		if err != nil {
			t.Errorf("%s (%s): %v", v.Name, v.Hex, err)
			continue
		}
		seen[m.Kind] = true
		if m.Kind != kinds[v.Kind] || m.Path != v.Path || m.Retry != v.Retry {
			t.Errorf("%s: got a %v of %q, retry %d", v.Name, m.Kind, m.Path, m.Retry)
		}
		agrees(t, v.Name, "payload", m.Payload, v.Payload)
		if !v.Foreign {
			agrees(t, v.Name, "args", m.Args(), v.Args)
			agrees(t, v.Name, "kwargs", m.Kwargs(), v.Kwargs)
		}
		if len(v.Meta) > 0 {
			saysMeta(t, v, &m.Meta)
		} else if !m.Meta.isZero() {
			t.Errorf("%s: meta %+v, want none", v.Name, m.Meta)
		}
		if got := hex.EncodeToString(m.Append(nil)); got != v.written() {
			t.Errorf("%s: written as %s, want %s", v.Name, got, v.written())
		}
		for n := range raw {
			if _, err := Parse(raw[:n], Default); err == nil {
				t.Errorf("%s: the first %d bytes are accepted", v.Name, n)
			}
		}
	}
	if len(seen) != len(kinds) {
		t.Errorf("the files have only the kinds %v", seen)
	}
}

// saysMeta checks the pairs of meta that a vector gives.
func saysMeta(t *testing.T, v vector, m *Meta) {
	t.Helper()
	want := as[map[string]any](t, untag(t, v.Meta))
	unknown := Pairs{}
	if m.Rest != nil {
		unknown = *m.Rest
	}
	rest, ok := append(AppendMapHeader(nil, unknown.N), unknown.Raw...), true
	for _, key := range v.Unknown {
		ok = ok && bytes.Contains(unknown.Raw, AppendString(nil, key))
	}
	got := map[string]any{}
	if v, _, err := DecodeAny(rest); err == nil {
		got = as[map[string]any](t, v)
	}
	if unknown.N != len(v.Unknown) || len(got) != unknown.N || !ok {
		t.Errorf("%s: unknown pairs %v, want %v", v.Name, got, v.Unknown)
	}
	known := map[string]any{
		"id": m.ID, "n": int64(m.N), "at": m.EnqueuedAt, "mr": int64(m.MaxRetry), "rt": int64(m.Retried),
		"d": int64(m.Deaths), "da": m.DiedAt,
	}
	x := m.Extra
	if x == nil {
		x = &Extra{}
	}
	delays, headers := make([]any, len(x.RetryDelays)), map[string]any{}
	for i, ms := range x.RetryDelays {
		delays[i] = ms
	}
	for k, v := range x.Headers {
		headers[k] = v
	}
	maps.Copy(known, map[string]any{
		"to": x.Timeout, "dl": x.Deadline, "xp": x.Expiry, "rn": x.Retention, "kr": x.KeepResult, "ru": x.RetryUntil,
		"rc": x.RetryCap, "ff": x.FirstFailed, "du": x.Due, "al": x.AloneDeaths,
		"uk": x.Lock, "ul": x.LockLife, "us": x.LockStart, "g": x.Group,
	})
	if len(delays) > 0 {
		known["rd"] = delays
	}
	if len(headers) > 0 {
		known["h"] = headers
	}
	if p := x.Gather; p != nil {
		known["gp"] = []any{int64(p.Fixed), p.Grace, p.MaxDelay, int64(p.MaxSize)}
	}
	if x.Failures != nil {
		known["er"], _, _ = DecodeAny(x.Failures)
	}
	for key, val := range known {
		if _, named := want[key]; named || !reflect.ValueOf(val).IsZero() {
			got[key] = val
		}
	}
	_, n := want["n"]
	_, mr := want["mr"]
	if !reflect.DeepEqual(got, want) || m.HasN != n || m.HasMaxRetry != mr {
		t.Errorf("%s: meta is %v (%+v), want %v", v.Name, got, m, want)
	}
}

type profile struct {
	Name   string   `msgpack:"name"`
	Tags   []string `msgpack:"tags,omitempty"`
	Best   *int
	Scores map[string]int
	Seen   time.Time
	Photo  []byte
}

func TestGoldenValues(t *testing.T) {
	types := map[string]reflect.Type{}
	for _, v := range []any{
		false, 0, int8(0), int64(0), uint(0), uint8(0), uint64(0), float32(0), 0.0, "",
		time.Time{},
		new(int),
		[2]string{},
		[]int(nil), []string(nil), [][]int(nil),
		map[string]int(nil), map[string][]int(nil), map[int]string(nil), map[int8]int(nil), map[bool]int(nil),
	} {
		types[reflect.TypeOf(v).String()] = reflect.TypeOf(v)
	}
	types["[]byte"], types["[4]byte"], types["any"], types["struct{}"] = reflect.TypeFor[[]byte](),
		reflect.TypeFor[[4]byte](), reflect.TypeFor[any](), reflect.TypeFor[struct{}]()
	types["point"], types["[]point"], types["*point"], types["profile"] = reflect.TypeFor[point](),
		reflect.TypeFor[[]point](), reflect.TypeFor[*point](), reflect.TypeFor[profile]()
	types["map[string][]*point"] = reflect.TypeFor[map[string][]*point]()
	for _, v := range golden(t, "values.json") {
		typ := types[v.Type]
		if typ == nil {
			t.Errorf("%s: unknown type %s", v.Name, v.Type)
			continue
		}
		raw := v.raw(t)
		if err := Check(raw, Default); err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		if len(v.Value) > 0 {
			agrees(t, v.Name, "the value", raw, v.Value)
		}
		codec, dst := codecOf(t, typ), reflect.New(typ).Elem()
		rest, err := codec.Decode(raw, dst)
		if v.Error != "" {
			var ve *ValueError
			if !errors.As(err, &ve) || v.Error != "value" {
				t.Errorf("%s: %s for %s: got %v and %v, want a %s error", v.Name, v.Hex, v.Type, dst, err, v.Error)
			}
			continue
		}
		if err != nil || len(rest) != 0 {
			t.Errorf("%s: %s for %s: %x left over, %v", v.Name, v.Hex, v.Type, rest, err)
			continue
		}
		again, err := codec.Append(nil, dst)
		if got := hex.EncodeToString(again); err != nil || got != v.written() {
			t.Errorf("%s: %v written as %s, %v; want %s", v.Name, dst, got, err, v.written())
		}
	}
}

func TestGoldenHostile(t *testing.T) {
	for _, v := range golden(t, "hostile.json") {
		raw := v.raw(t)
		var err error
		took := allocated(func() {
			if v.As == "message" {
				_, err = Parse(raw, Default)
			} else {
				err = Check(raw, Default)
			}
		})
		var fe *FormatError
		if !errors.As(err, &fe) {
			t.Errorf("%s: refused as a %s with %v", v.Name, v.As, err)
			continue
		}
		if fe.Offset < 0 || fe.Offset > len(raw) || len(err.Error()) > 300 {
			t.Errorf("%s: %v", v.Name, err)
		}
		if took > 16<<10 {
			limits.Errorf(t, "%s: %d bytes allocated", v.Name, took)
		}
	}
}

// The vectors contain all examples of docs/PROTOCOL.md.
func TestProtocolExamples(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "PROTOCOL.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for _, v := range append(golden(t, "messages.json"), golden(t, "values.json")...) {
		known[v.Name] = v.Hex
		if v.Error != "" {
			known[v.Name+" (refused)"] = v.Hex
		}
	}
	_, examples, found := strings.Cut(string(doc), "| vector | bytes |\n|---|---|\n")
	examples, _, _ = strings.Cut(examples, "\n\n")
	rows := strings.Split(examples, "\n")
	if !found || len(rows) < 10 {
		t.Fatalf("found %d rows in the table of examples", len(rows))
	}
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		name, bytes := cells[0], strings.NewReplacer(" ", "", "`", "").Replace(cells[len(cells)-1])
		if known[name] != bytes {
			t.Errorf("the example %q is %s, the vector %q", name, bytes, known[name])
		}
	}
}
