package function

import (
	"fmt"

	"github.com/godelayed/delayed/internal/wire"
)

// Split returns the encoded arguments of a message by position, as their caller gave them: those of a variadic tail one
// by one. f is nil if the function is unknown here; then a tail that was sent as one list is one argument. Keyword
// arguments of Python are not among them.
func Split(f *Function, m *wire.Message) ([][]byte, error) {
	b := m.Payload
	if m.Python() {
		b = m.Args()
	}
	if len(b) == 0 {
		return nil, nil
	}
	n, rest, isArray := wire.ArrayHeader(b)
	switch {
	case !isArray && (m.Python() || f != nil && len(f.params) == 0): // nil stands for no arguments
		return nil, nil
	case !isArray:
		return [][]byte{b}, nil
	case f != nil && len(f.params) == 1 && !f.variadic && !m.Meta.HasN && (n != 1 || f.params[0].codec.FromArray()):
		return [][]byte{b}, nil
	}
	args, err := values(make([][]byte, 0, n), n, rest)
	if err != nil || f == nil || !f.variadic || len(args) != len(f.params) || len(f.params) == 1 && !m.Meta.HasN {
		return args, err
	}
	last := len(args) - 1
	n, rest, isArray = wire.ArrayHeader(args[last])
	if !isArray || m.Meta.HasN && f.elem.codec.FromArray() {
		return args, nil
	}
	return values(args[:last], n, rest)
}

// values appends the n values at the front of b.
func values(list [][]byte, n int, b []byte) ([][]byte, error) {
	for range n {
		rest, _, err := wire.Skip(b)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", len(list)+1, err)
		}
		list, b = append(list, b[:len(b)-len(rest)]), rest
	}
	return list, nil
}
