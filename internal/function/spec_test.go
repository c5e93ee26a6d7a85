package function

import "slices"

// specified is a func value with the settings that the options of delayed.Func give. The functions below have the names
// of those options.
type specified struct {
	fn   any
	spec Spec
}

type option func(*Spec)

func Func(fn any, options ...option) *specified {
	s := &specified{fn: fn}
	for _, o := range options {
		o(&s.spec)
	}
	return s
}

func Name(path string) option {
	return func(s *Spec) { s.Name, s.Named = path, true }
}

func Alias(paths ...string) option {
	return func(s *Spec) { s.Aliases = append(slices.Clip(s.Aliases), paths...) }
}

func Optional(n int) option {
	return func(s *Spec) { s.Optional = n }
}

// newFunction makes a function from a func value or from a specified one.
func newFunction(fn any) (*Function, error) {
	if s, ok := fn.(*specified); ok {
		return New(s.fn, s.spec)
	}
	return New(fn, Spec{})
}

// functionOf is newFunction by way of Of, if fn is a func value.
func functionOf(fn any) (*Function, error) {
	if _, ok := fn.(*specified); ok {
		return newFunction(fn)
	}
	return Of(fn)
}
