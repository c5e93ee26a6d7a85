// Package signature writes the functions of a worker down as JSON, for programs in other languages. docs/PROTOCOL.md describes the form.
package signature

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/wire"
)

// version is that of the form.
const version = 1

type listing struct {
	Version   int                    `json:"version"`
	Functions []function             `json:"functions"`
	Types     map[string]*wire.Shape `json:"types,omitempty"`
}

type function struct {
	Path     string      `json:"path"`
	Aliases  []string    `json:"aliases,omitempty"`
	Params   []parameter `json:"parameters"`
	Variadic bool        `json:"variadic,omitempty"`
	Optional int         `json:"optional,omitempty"`
	Result   *value      `json:"result,omitempty"`
}

type parameter struct {
	Name string `json:"name,omitempty"`
	value
}

// value is a type: as Go writes it, and how its values travel.
type value struct {
	Go   string      `json:"go"`
	Type *wire.Shape `json:"type"`
}

// Write writes functions to out. Their parameters have names where their source can be read.
func Write(out io.Writer, infos []delayed.FunctionInfo) error {
	all := listing{Version: version, Functions: []function{}}
	var shapes wire.Shapes
	var src sources
	for i := range infos {
		info := &infos[i]
		f := function{Path: info.Path, Aliases: info.Aliases, Params: []parameter{}, Variadic: info.Variadic, Optional: info.Optional}
		names := src.names(info)
		for i, t := range info.Params {
			shape, err := shapes.Of(t)
			if err != nil {
				return fmt.Errorf("delayed: parameter %s of %s: %w", strconv.Itoa(i), info.Path, err)
			}
			p := parameter{value: value{text(t), shape}}
			if names != nil {
				p.Name = names[i]
			}
			f.Params = append(f.Params, p)
		}
		if t := info.Result; t != nil {
			shape, err := shapes.Of(t)
			if err != nil {
				return fmt.Errorf("delayed: result of %s: %w", info.Path, err)
			}
			f.Result = &value{text(t), shape}
		}
		all.Functions = append(all.Functions, f)
	}
	all.Types = shapes.Types
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(all)
}

// text writes a type as one does by hand.
func text(t reflect.Type) string {
	return strings.NewReplacer("interface {}", "any", "[]uint8", "[]byte", "]uint8", "]byte").Replace(t.String())
}
