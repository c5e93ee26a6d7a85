// Package catalog is the JSON form in which the functions of a worker are written down, for people and programs in
// other languages. docs/PROTOCOL.md describes it.
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
	More      int                    `json:"more,omitempty"` // functions that had no room
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

// Value is a type: as Go writes it, and how its values travel.
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

// text writes a type as one does by hand.
func text(t reflect.Type) string {
	return strings.NewReplacer("interface {}", "any", "[]uint8", "[]byte", "]uint8", "]byte").Replace(t.String())
}
