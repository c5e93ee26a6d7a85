package inspect

import (
	"slices"
	"strconv"
	"strings"

	"github.com/godelayed/delayed/internal/wire"
)

// Lacks reports whether the function's parameters lack a field of Task.UnknownFields, such as "1.Items[].SKU". A task
// that has been parked for such fields runs once a worker knows its function and lacks none of its fields. Lacks is
// false for a path that does not fit the parameters otherwise.
func (f *Function) Lacks(field string) bool {
	digits := len(field) - len(strings.TrimLeft(field, "0123456789"))
	i, err := strconv.Atoi(field[:digits])
	if err != nil || i < 1 || i > len(f.Parameters) {
		return false
	}
	s, path := f.Parameters[i-1].Shape, field[digits:]
	for path != "" && s != nil {
		for s != nil && s.Kind == "optional" {
			s = s.Elem
		}
		if s == nil {
			return false
		}
		if rest, ok := strings.CutPrefix(path, "[]"); ok {
			s, path = s.Elem, rest // nil if it has no elements
			continue
		}
		key, rest, ok := wire.CutField(path)
		if !ok || s.Kind != "struct" {
			return false
		}
		at := slices.IndexFunc(s.Fields, func(f Field) bool { return f.Name == key })
		if at < 0 {
			return true
		}
		s, path = s.Fields[at].Shape, rest
	}
	return false
}
