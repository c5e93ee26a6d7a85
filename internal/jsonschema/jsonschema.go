// Package jsonschema describes types of Go by JSON Schema, with the comments of their fields. It serves tests only:
// they write schemas, and compare the kept ones with the types.
package jsonschema

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Docs are the comments of types, by package and name, "document.Task", and of fields, "document.Task.State".
type Docs map[string]string

// Read adds the comments of the types and fields in a folder that holds a package of the same name.
func (d Docs) Read(dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(abs, "*.go"))
	if err != nil {
		return err
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if decl, ok := n.(*ast.GenDecl); ok {
				for _, spec := range decl.Specs {
					d.add(filepath.Base(abs)+".", decl, spec)
				}
			}
			return true
		})
	}
	return nil
}

func (d Docs) add(prefix string, decl *ast.GenDecl, spec ast.Spec) {
	s, ok := spec.(*ast.TypeSpec)
	if !ok {
		return
	}
	d[prefix+s.Name.Name] = oneLine(decl.Doc.Text())
	st, ok := s.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range st.Fields.List {
		for _, name := range f.Names {
			d[prefix+s.Name.Name+"."+name.Name] = oneLine(f.Doc.Text() + f.Comment.Text())
		}
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func nameOf(t reflect.Type) string { return path.Base(t.PkgPath()) + "." + t.Name() }

// Describe says what a type is, by its comment: "It is the list of queues".
func (d Docs) Describe(t reflect.Type) string {
	rest, _ := strings.CutPrefix(d[nameOf(t)], t.Name()+" ")
	return "It " + rest
}

// Of describes a type. If ref is not nil, structs that it names are described by a reference to that name.
func (d Docs) Of(t reflect.Type, ref func(reflect.Type) string) map[string]any {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[[]byte]():
		return map[string]any{"type": "string", "contentEncoding": "base64"}
	case t.PkgPath() == "encoding/json" && t.Name() == "RawMessage":
		return map[string]any{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return orNull(d.Of(t.Elem(), ref))
	case reflect.Slice:
		return map[string]any{"type": "array", "items": d.Of(t.Elem(), ref)}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": d.Of(t.Elem(), ref)}
	case reflect.Struct:
		if ref != nil {
			if name := ref(t); name != "" {
				return map[string]any{"$ref": name}
			}
		}
		return d.Object(t, ref)
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Interface:
		return map[string]any{}
	default:
		panic(fmt.Sprintf("no schema for %v", t))
	}
}

// orNull lets a schema allow null besides.
func orNull(s map[string]any) map[string]any {
	if name, ok := s["type"].(string); ok {
		s["type"] = []string{name, "null"}
	} else if _, ok := s["$ref"]; ok {
		return map[string]any{"anyOf": []any{s, map[string]any{"type": "null"}}}
	}
	return s
}

// Object describes a struct. Embedded structs are part of it.
func (d Docs) Object(t reflect.Type, ref func(reflect.Type) string) map[string]any {
	properties, required := map[string]any{}, []string{}
	for owner, f := range fields(t) {
		tag, ok := f.Tag.Lookup("json")
		if !ok {
			continue // not exported
		}
		name, rest, _ := strings.Cut(tag, ",")
		s := d.Of(f.Type, ref)
		if doc := d[nameOf(owner)+"."+f.Name]; doc != "" {
			s["description"] = doc
		}
		properties[name] = s
		if rest == "" {
			required = append(required, name)
		}
	}
	slices.Sort(required)
	return map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	}
}

// fields yields the fields of a struct and of those that are embedded in it, with the struct that declares them.
func fields(t reflect.Type) func(func(reflect.Type, reflect.StructField) bool) {
	return func(yield func(reflect.Type, reflect.StructField) bool) {
		for i := range t.NumField() {
			f := t.Field(i)
			if !f.Anonymous {
				if !yield(t, f) {
					return
				}
				continue
			}
			for owner, g := range fields(f.Type) {
				if !yield(owner, g) {
					return
				}
			}
		}
	}
}
