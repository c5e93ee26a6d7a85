// Package catalog describes a worker's functions as JSON, for people and for programs in other languages.
// docs/PROTOCOL.md has the format.
package catalog

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/godelayed/delayed/internal/wire"
)

// Version is that of the form.
const Version = 1

// List is a list of functions.
type List struct {
	Version   int                    `json:"version"`
	Functions []Function             `json:"functions"`
	Types     map[string]*wire.Shape `json:"types,omitempty"`
	More      int                    `json:"more,omitempty"` // how many functions did not fit
}

// Function is one function.
type Function struct {
	Path     string      `json:"path"`
	Aliases  []string    `json:"aliases,omitempty"`
	Params   []Parameter `json:"parameters"`
	Variadic bool        `json:"variadic,omitempty"`
	Optional int         `json:"optional,omitempty"`
	Result   *Value      `json:"result,omitempty"`
}

// Parameter is one parameter of a function.
type Parameter struct {
	Name string `json:"name,omitempty"`
	Value
}

// Value is a type: its name in Go, and how its values are encoded.
type Value struct {
	Go   string      `json:"go"`
	Type *wire.Shape `json:"type"`
}

// SetTypes fills in the parameters, which have no names then, and the result; nil for none. Types that have names go to
// shapes.
func (f *Function) SetTypes(shapes *wire.Shapes, params []reflect.Type, result reflect.Type) error {
	f.Params = make([]Parameter, len(params))
	for i, t := range params {
		shape, err := shapes.Of(t)
		if err != nil {
			return fmt.Errorf("delayed: parameter %d of %s: %w", i, f.Path, err)
		}
		f.Params[i].Value = Value{text(t), shape}
	}
	if result == nil {
		return nil
	}
	shape, err := shapes.Of(result)
	if err != nil {
		return fmt.Errorf("delayed: result of %s: %w", f.Path, err)
	}
	f.Result = &Value{text(result), shape}
	return nil
}

// text returns a type as people write it.
func text(t reflect.Type) string {
	return strings.NewReplacer("interface {}", "any", "[]uint8", "[]byte", "]uint8", "]byte").Replace(t.String())
}
