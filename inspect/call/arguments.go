// Package call makes calls of functions from what people write: arguments as JSON, checked against the signatures that
// workers publish; and reads options, conditions on tasks, durations and times as people write them.
//
// The texts that it returns as errors may be shown to whoever has written the arguments: they are escaped and short.
package call

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
)

// Arguments reads arguments, each a JSON value, as the parameters of a function want them. Without a function they are
// as JSON has them.
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
		p := params[min(i, len(params)-1)]
		want := kind{p.Shape, p.Type}
		if i >= fixed {
			want = want.elem()
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
			return nil, fmt.Errorf(`keyword arguments: expected a JSON object, such as '{"to":"ann"}', found %s`,
				quote(kwargs))
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

// mismatch returns an error with what was expected and found.
func mismatch(want string, v any) error {
	text, err := JSON(v)
	if err != nil {
		text = fmt.Append(nil, v)
	}
	return fmt.Errorf("expected %s, found %.100s", want, text)
}

// quote writes a text that somebody has given, for messages.
func quote(s string) string { return strconv.Quote(Clip(s, 100)) }

// Clip returns a text in one printable line of at most so many characters; an ellipsis stands for what does not fit.
func Clip(s string, most int) string {
	short := false
	if n := 4 * most; len(s) > n { // it may have a megabyte
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s, short = s[:n], true
	}
	runes := []rune(inspect.Printable(s))
	if len(runes) > most {
		runes, short = runes[:most-1], true
	}
	if short {
		return string(runes) + "…"
	}
	return string(runes)
}
