package function

import (
	"slices"
	"strconv"
	"strings"

	"github.com/godelayed/delayed/internal/wire"
)

// UnknownFields returns the fields that structs in a task's message have and the parameters of f lack, as paths such as
// 1.Items[].SKU: the number of the argument, and the field's path of wire.Codec.Unknown. It returns none if the message
// fits.
func (f *Function) UnknownFields(m *wire.Message) []string {
	if f.accepts(m) {
		return nil
	}
	b := m.Payload
	n, rest, isArray := wire.ArrayHeader(b)
	s := fieldSearch{f: f}
	switch {
	case len(f.params) == 0:
	case m.Meta.HasN:
		if isArray {
			s.counted(n, rest)
		}
	case len(f.params) == 1:
		if isArray && n == 1 && !f.params[0].codec.FromArray() {
			b = rest
		}
		s.searchParam(0, b)
	default:
		if isArray {
			s.list(n, rest)
		}
		if len(s.found) == 0 && f.required() <= 1 {
			s.searchParam(0, b) // the other arguments may be missing
		}
	}
	return s.found
}

// accepts reports whether f can be called with the arguments of a message.
func (f *Function) accepts(m *wire.Message) bool {
	fr, _ := f.frames.Get().(*frame)
	defer f.free(fr)
	return f.decode(fr, m) == nil
}

// lacks reports whether f lacks a field with a path of UnknownFields. It is false for other texts.
func (f *Function) lacks(path string) bool {
	digits := len(path) - len(strings.TrimLeft(path, "0123456789"))
	i, err := strconv.Atoi(path[:digits])
	return err == nil && i >= 1 && i <= len(f.params) && f.params[i-1].codec.Lacks(path[digits:])
}

// fieldSearch collects fields that a function lacks.
type fieldSearch struct {
	f     *Function
	found []string
}

// searchParam looks through the value of parameter i at the front of b.
func (s *fieldSearch) searchParam(i int, b []byte) { s.add(strconv.Itoa(i+1), s.f.params[i].codec, b) }

func (s *fieldSearch) add(prefix string, codec *wire.Codec, b []byte) {
	for _, path := range codec.Unknown(b, wire.MaxUnknownFields) {
		path = prefix + path
		// it may have been found in another element of the tail
		if len(s.found) < wire.MaxUnknownFields && !slices.Contains(s.found, path) {
			s.found = append(s.found, path)
		}
	}
}

// list searches n arguments that begin at b, one for each parameter.
func (s *fieldSearch) list(n int, b []byte) {
	for i := range min(n, len(s.f.params)) {
		s.searchParam(i, b)
		var err error
		if b, _, err = wire.Skip(b); err != nil {
			return
		}
	}
}

// counted searches n arguments of a message that counts them: those of a variadic tail stand one by one, or in one
// list.
func (s *fieldSearch) counted(n int, b []byte) {
	f := s.f
	if !f.variadic {
		s.list(n, b)
		return
	}
	fixed := len(f.params) - 1
	for i := range n {
		_, _, isArray := wire.ArrayHeader(b)
		switch {
		case i < fixed, i == fixed && n == fixed+1 && isArray && !f.elem.codec.FromArray():
			s.searchParam(i, b)
		default:
			s.add(strconv.Itoa(fixed+1)+"[]", f.elem.codec, b)
		}
		var err error
		if b, _, err = wire.Skip(b); err != nil {
			return
		}
	}
}

// LacksAny reports whether f lacks one of the fields with these paths.
func (f *Function) LacksAny(paths []string) bool { return slices.ContainsFunc(paths, f.lacks) }
