package cli

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// views are the documents that commands print with --json, by the names of their schemas.
var views = map[string]any{
	"queues": queuesView{}, "queue": queueView{}, "history": historyView{}, "tasks": listsView{}, "task": foundView{},
	"acted": actedView{}, "done": resultView{}, "workers": workersView{},
	"functions": functionsView{}, "cron": cronView{},
	"ticks": ticksView{}, "groups": groupsView{}, "audit": auditView{},
	"stats": statsView{}, "enqueued": enqueuedView{},
	"doctor": doctorView{}, "monitor": monitorView{}, "version": versionView{}, "export": lineJSON{},
	"tail": tailView{}, "metrics": metricsView{}, "scale": scaleView{}, "bench": benchView{},
}

// TestSchemas holds the schemas against the types that commands print. With -update it writes them.
func TestSchemas(t *testing.T) {
	t.Parallel()
	docs := comments(t, ".", "../../../../inspect")
	dir := "../../schema"
	write := flag.Lookup("update").Value.String() == "true"
	for name, v := range views {
		root := reflect.TypeOf(v)
		s := schema(root, docs)
		s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
		s["title"] = "delayed " + name
		s["description"] = "It is " + strings.TrimPrefix(docs[root.Name()], root.Name()+" is ")
		text, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, name+".json")
		if write {
			if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if found, err := os.ReadFile(file); err != nil || !bytes.Equal(bytes.TrimSpace(found), text) {
			t.Errorf("%s is not what the commands print (%v): run make generate", file, err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != len(views) {
		t.Errorf("%d schemas of %d documents (%v)", len(files), len(views), err)
	}
}

// schema describes a type.
func schema(t reflect.Type, docs map[string]string) map[string]any {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[[]byte]():
		return map[string]any{"type": "string", "contentEncoding": "base64"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		s := schema(t.Elem(), docs)
		if name, ok := s["type"].(string); ok {
			s["type"] = []string{name, "null"}
		}
		return s
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schema(t.Elem(), docs)}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schema(t.Elem(), docs)}
	case reflect.Struct:
		return object(t, docs)
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

// object describes a struct. Embedded structs are part of it.
func object(t reflect.Type, docs map[string]string) map[string]any {
	properties, required := map[string]any{}, []string{}
	for f := range fields(t) {
		tag, ok := f.Tag.Lookup("json")
		if !ok {
			continue // embedded or not exported
		}
		name, rest, _ := strings.Cut(tag, ",")
		s := schema(f.Type, docs)
		if doc := docs[f.PkgPath+f.Name]; doc != "" { // PkgPath is that of the struct, see fields
			s["description"] = doc
		}
		properties[name] = s
		if rest != "omitempty" {
			required = append(required, name)
		}
	}
	slices.Sort(required)
	return map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	}
}

// fields yields the fields of a struct and of those that are embedded in it. PkgPath is the name of the
// struct and a dot.
func fields(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Anonymous {
				for g := range fields(f.Type) {
					if !yield(g) {
						return
					}
				}
				continue
			}
			f.PkgPath = t.Name() + "."
			if !yield(f) {
				return
			}
		}
	}
}

// comments returns the comments of types, and of fields as Type.Field, in the source of packages.
func comments(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	docs := map[string]string{}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if d, ok := n.(*ast.GenDecl); ok {
					for _, s := range d.Specs {
						collect(docs, d, s)
					}
				}
				return true
			})
		}
	}
	return docs
}

func collect(docs map[string]string, d *ast.GenDecl, spec ast.Spec) {
	s, ok := spec.(*ast.TypeSpec)
	if !ok {
		return
	}
	docs[s.Name.Name] = oneLine(d.Doc.Text())
	st, ok := s.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range st.Fields.List {
		for _, name := range f.Names {
			docs[s.Name.Name+"."+name.Name] = oneLine(f.Doc.Text() + f.Comment.Text())
		}
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// TestEveryViewHasASchema finds types that print themselves, and are not in views.
func TestEveryViewHasASchema(t *testing.T) {
	t.Parallel()
	named := map[string]bool{}
	for _, v := range views {
		named[reflect.TypeOf(v).Name()] = true
	}
	for name := range comments(t, ".") {
		if strings.HasSuffix(name, "View") && !named[name] {
			t.Errorf("%s has no schema: expected one of %v", name, slices.Sorted(maps.Keys(named)))
		}
	}
}
