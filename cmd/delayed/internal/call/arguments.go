// Package call makes calls of functions from what people write: arguments as JSON, checked against the signatures that
// workers publish.
package call

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
)

// Arguments reads arguments, each a JSON value, as the parameters of a function want them. Without a function they are
// what JSON says.
func Arguments(texts []string, fn *inspect.Function) ([]any, error) {
	values := make([]any, len(texts))
	for i, text := range texts {
		v, err := parseJSON(text)
		if err != nil {
			return nil, fmt.Errorf(`argument %d: expected JSON, such as 42, true or '"text"' with both kinds of `+
				`quotes, found %s`, i+1, quote(text))
		}
		values[i] = v
	}
	if fn == nil {
		for i := range values {
			values[i] = natural(values[i])
		}
		return values, nil
	}
	params := fn.Parameters
	fixed := len(params)
	if fn.Variadic {
		fixed--
	}
	if len(values) > fixed && !fn.Variadic || len(values) < fixed-optional(fn) {
		return nil, fmt.Errorf("expected the arguments of %s, found %d", fn.Signature(), len(values))
	}
	for i := range values {
		want := params[min(i, len(params)-1)].Type
		if i >= fixed {
			want = strings.TrimPrefix(want, "[]")
		}
		v, err := convert(values[i], want)
		if err != nil {
			return nil, fmt.Errorf("argument %d of %s: %w", i+1, fn.Signature(), err)
		}
		values[i] = v
	}
	if !fn.Variadic || len(values) < fixed {
		return values, nil
	}
	rest := append([]any{}, values[fixed:]...)
	return append(values[:fixed:fixed], rest), nil // on the wire, variadic arguments are one
}

// Split returns the elements of a JSON array of arguments, as they are written; none if there is no text.
func Split(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil, fmt.Errorf(`expected a JSON array, such as '[42,"en"]', found %s`, quote(text))
	}
	texts := make([]string, len(raw))
	for i := range raw {
		texts[i] = string(raw[i])
	}
	return texts, nil
}

// optional returns how many of the fixed parameters may lack.
func optional(fn *inspect.Function) int {
	if fn.Variadic {
		return max(fn.Optional-1, 0)
	}
	return fn.Optional
}

// Python returns the call of a Python function. Its arguments are not checked. kwargs is a JSON
// object, or "".
func Python(path string, texts []string, kwargs string) (*delayed.Task, error) {
	args, err := Arguments(texts, nil)
	if err != nil {
		return nil, err
	}
	var named map[string]any
	if kwargs != "" {
		v, err := parseJSON(kwargs)
		m, ok := v.(map[string]any)
		if err != nil || !ok {
			return nil, fmt.Errorf(`--kwargs: expected a JSON object, such as '{"to":"ann"}', found %s`, quote(kwargs))
		}
		named, _ = natural(m).(map[string]any)
	}
	return delayed.NewPyTask(path, args, named), nil
}

// parseJSON reads one JSON value, with numbers as they are written.
func parseJSON(text string) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	if err = d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

// natural makes numbers int64, uint64 or float64.
func natural(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = natural(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = natural(v[k])
		}
	}
	return v
}

// convert makes a JSON value one of a Go type, by the name of the type. Types with names of their own take anything:
// only the worker knows them.
func convert(v any, want string) (any, error) {
	if rest, ok := strings.CutPrefix(want, "*"); ok {
		if v == nil {
			return nil, nil //nolint:nilnil // nil is the value
		}
		return convert(v, rest)
	}
	switch want {
	case "any", "interface {}":
		return natural(v), nil
	case "bool":
		if b, ok := v.(bool); ok {
			return b, nil
		}
		return nil, mismatch("true or false", v)
	case "string":
		if s, ok := v.(string); ok {
			return s, nil
		}
		return nil, mismatch("a text in quotes", v)
	case "[]byte":
		return toBytes(v)
	case "time.Time":
		s, _ := v.(string)
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return nil, mismatch(`a time such as "2026-01-31T15:04:05Z"`, v)
		}
		return t, nil
	case "time.Duration":
		if s, ok := v.(string); ok {
			if d, err := term.ParseDuration(s); err == nil {
				return int64(d), nil
			}
		}
		return toInteger(v, "int64")
	case "float32", "float64":
		n, ok := v.(json.Number)
		f, err := n.Float64()
		if !ok || err != nil {
			return nil, mismatch("a number", v)
		}
		return f, nil
	}
	switch {
	case integers[want] != 0:
		return toInteger(v, want)
	case strings.HasPrefix(want, "["):
		return toSlice(v, want)
	case strings.HasPrefix(want, "map["):
		return toMap(v, want)
	}
	return natural(v), nil
}

// integers are the sizes of integer types in bits; negative: unsigned.
var integers = map[string]int{
	"int": 64, "int8": 8, "int16": 16, "int32": 32, "int64": 64,
	"uint": -64, "uint8": -8, "uint16": -16, "uint32": -32, "uint64": -64,
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

func toBytes(v any) (any, error) {
	if v == nil {
		return []byte(nil), nil
	}
	s, ok := v.(string)
	b, err := base64.StdEncoding.DecodeString(s)
	if !ok || err != nil {
		return nil, mismatch("bytes in base64", v)
	}
	return b, nil
}

func toSlice(v any, want string) (any, error) {
	length, element, _ := strings.Cut(want[1:], "]")
	list, ok := v.([]any)
	if v == nil && length == "" {
		return nil, nil //nolint:nilnil // nil is the value
	}
	if !ok || length != "" && strconv.Itoa(len(list)) != length {
		return nil, mismatch("an array for "+want, v)
	}
	for i := range list {
		e, err := convert(list[i], element)
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i+1, err)
		}
		list[i] = e
	}
	return list, nil
}

func toMap(v any, want string) (any, error) {
	key, element, _ := strings.Cut(want[len("map["):], "]")
	m, ok := v.(map[string]any)
	if v == nil {
		return nil, nil //nolint:nilnil // nil is the value
	}
	if !ok {
		return nil, mismatch("an object for "+want, v)
	}
	numbered := map[any]any{}
	for k := range m {
		e, err := convert(m[k], element)
		if err != nil {
			return nil, fmt.Errorf("value of %s: %w", quote(k), err)
		}
		m[k] = e
		if integers[key] != 0 {
			n, err := toInteger(json.Number(k), key)
			if err != nil {
				return nil, fmt.Errorf("key %s: %w", quote(k), err)
			}
			numbered[n] = e
		}
	}
	if integers[key] != 0 {
		return numbered, nil
	}
	return m, nil
}

// mismatch says what was expected and found.
func mismatch(want string, v any) error {
	text, err := term.JSON(v)
	if err != nil {
		text = fmt.Append(nil, v)
	}
	return fmt.Errorf("expected %s, found %.100s", want, text)
}

// quote writes a text that somebody has given, for messages.
func quote(s string) string { return strconv.Quote(term.Clip(s, 100)) }
