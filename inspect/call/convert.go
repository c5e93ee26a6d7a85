package call

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godelayed/delayed/inspect"
)

// kind is what a value must be: its shape, and its type in Go if that is known, which distinguishes durations from
// integers.
type kind struct {
	shape *inspect.Shape // nil: anything
	text  string
}

// elem returns the kind of the elements of a list, of the values of a map, or of what a pointer points to.
func (k kind) elem() kind {
	text := strings.TrimPrefix(k.text, "*")
	if text == k.text {
		_, text, _ = strings.Cut(text, "]")
	}
	if k.shape == nil {
		return kind{}
	}
	return kind{k.shape.Elem, text}
}

// value returns the kind of the value that a map has at a key, or of a field of a struct.
func (k kind) value(key string) kind {
	if k.shape == nil || k.shape.Kind != "struct" {
		return k.elem()
	}
	for _, f := range k.shape.Fields {
		if f.Name == key {
			return kind{f.Shape, ""}
		}
	}
	return kind{}
}

// String names the kind for people.
func (k kind) String() string {
	switch {
	case k.text != "":
		return k.text
	case k.shape.Name != "":
		return inspect.ShortName(k.shape.Name)
	}
	return "a " + k.shape.Kind
}

// convert makes a JSON value one of a kind.
func convert(v any, want kind) (any, error) {
	if want.shape == nil {
		return natural(v), nil
	}
	switch want.shape.Kind {
	case "optional":
		if v == nil {
			return nil, nil //nolint:nilnil // nil is the value
		}
		return convert(v, want.elem())
	case "bool":
		return typed[bool](v, "true or false")
	case "string":
		return typed[string](v, "a text in quotes")
	case "bytes":
		return toBytes(v, want.shape.Length)
	case "time":
		s, _ := v.(string)
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return nil, mismatch(`a time such as "2026-01-31T15:04:05Z"`, v)
		}
		return t, nil
	case "float32", "float64":
		n, ok := v.(json.Number)
		f, err := n.Float64()
		if !ok || err != nil {
			return nil, mismatch("a number", v)
		}
		return f, nil
	case "list":
		return toList(v, want)
	case "map":
		return toMap(v, want)
	case "struct":
		return toStruct(v, want)
	}
	if s, ok := v.(string); ok && want.text == "time.Duration" {
		if d, err := ParseDuration(s); err == nil {
			return int64(d), nil
		}
	}
	if integers[want.shape.Kind] != 0 {
		return toInteger(v, want.shape.Kind)
	}
	return natural(v), nil
}

// typed returns a value that JSON has in the same form.
func typed[T any](v any, want string) (any, error) {
	if _, ok := v.(T); !ok {
		return nil, mismatch(want, v)
	}
	return v, nil
}

// integers are the sizes of integer kinds in bits; negative: unsigned.
var integers = map[string]int{
	"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint8": -8, "uint16": -16, "uint32": -32, "uint64": -64,
}

func toInteger(v any, want string) (any, error) {
	n, _ := v.(json.Number)
	bits := integers[want]
	if bits > 0 {
		i, err := strconv.ParseInt(n.String(), 10, bits)
		if err != nil {
			least := int64(math.MinInt64) >> (64 - bits)
			return nil, mismatch(fmt.Sprintf("a whole number from %d to %d", least, -(least+1)), v)
		}
		return i, nil
	}
	u, err := strconv.ParseUint(n.String(), 10, -bits)
	if err != nil {
		return nil, mismatch(fmt.Sprintf("a whole number from 0 to %d", uint64(math.MaxUint64)>>(64+bits)), v)
	}
	return u, nil
}

// toBytes reads bytes of a length; -1 is any.
func toBytes(v any, length int) (any, error) {
	if v == nil && length < 0 {
		return []byte(nil), nil
	}
	s, ok := v.(string)
	b, err := base64.StdEncoding.DecodeString(s)
	switch {
	case !ok || err != nil:
		return nil, mismatch("bytes in base64", v)
	case length >= 0 && len(b) != length:
		return nil, mismatch(count(length, "byte")+" in base64", v)
	}
	return b, nil
}

func toList(v any, want kind) (any, error) {
	list, ok := v.([]any)
	length := want.shape.Length
	if v == nil && length < 0 {
		return nil, nil //nolint:nilnil // nil is the value
	}
	if !ok || length >= 0 && len(list) != length {
		return nil, mismatch("an array for "+want.String(), v)
	}
	for i := range list {
		e, err := convert(list[i], want.elem())
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i+1, err)
		}
		list[i] = e
	}
	return list, nil
}

func toMap(v any, want kind) (any, error) {
	m, ok := v.(map[string]any)
	if v == nil {
		return nil, nil //nolint:nilnil // nil is the value
	}
	if !ok {
		return nil, mismatch("an object for "+want.String(), v)
	}
	key := want.shape.Key
	numbered := map[any]any{}
	for k := range m {
		e, err := convert(m[k], want.elem())
		if err != nil {
			return nil, fmt.Errorf("value of %s: %w", quote(k), err)
		}
		m[k] = e
		if integers[key.Kind] != 0 {
			n, err := toInteger(json.Number(k), key.Kind)
			if err != nil {
				return nil, fmt.Errorf("key %s: %w", quote(k), err)
			}
			numbered[n] = e
		}
	}
	if integers[key.Kind] != 0 {
		return numbered, nil
	}
	return m, nil
}

// toStruct reads the fields of a struct; those that are not given are zero.
func toStruct(v any, want kind) (any, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, mismatch("an object for "+want.String(), v)
	}
	for name := range m {
		i := slices.IndexFunc(want.shape.Fields, func(f inspect.Field) bool { return f.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("expected fields of %s, %s, found %s", want, fieldNames(want.shape), quote(name))
		}
		e, err := convert(m[name], kind{want.shape.Fields[i].Shape, ""})
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", name, err)
		}
		m[name] = e
	}
	return m, nil
}

// mostFields bounds the fields that an error lists.
const mostFields = 20

// fieldNames lists the fields of a struct.
func fieldNames(s *inspect.Shape) string {
	if len(s.Fields) == 0 {
		return "which has none"
	}
	var names []string
	for _, f := range s.Fields[:min(len(s.Fields), mostFields)] {
		names = append(names, Clip(f.Name, 60))
	}
	if len(names) < len(s.Fields) {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
