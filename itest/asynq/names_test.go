//go:build unix

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// asynqNames returns the exported names of asynq: of functions, types, constants, variables, methods and fields.
func asynqNames(t *testing.T) map[string]bool {
	t.Helper()
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/hibiken/asynq").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			addNames(names, d)
		}
	}
	return names
}

func addNames(names map[string]bool, d ast.Decl) {
	if fn, ok := d.(*ast.FuncDecl); ok {
		names[fn.Name.Name] = true
		return
	}
	gen, ok := d.(*ast.GenDecl)
	if !ok {
		return
	}
	for _, spec := range gen.Specs {
		switch spec := spec.(type) {
		case *ast.ValueSpec:
			for _, id := range spec.Names {
				names[id.Name] = true
			}
		case *ast.TypeSpec:
			names[spec.Name.Name] = true
			var members *ast.FieldList
			switch typ := spec.Type.(type) {
			case *ast.StructType:
				members = typ.Fields
			case *ast.InterfaceType:
				members = typ.Methods
			default:
				continue
			}
			for _, member := range members.List {
				for _, id := range member.Names {
					names[id.Name] = true
				}
			}
		}
	}
}

// Every name of asynq in docs/MIGRATION.md is in the version that go.mod names.
func TestNamesInMigration(t *testing.T) {
	page, err := os.ReadFile("../../docs/MIGRATION.md")
	if err != nil {
		t.Fatal(err)
	}
	names := asynqNames(t)
	n := 0
	check := func(name string) {
		n++
		if !names[name] {
			t.Errorf("docs/MIGRATION.md names %s of asynq: there is none", name)
		}
	}
	qualified := regexp.MustCompile(`\b(?:asynq|client|inspector|scheduler|mux|srv)\.([A-Z]\w*)`)
	for _, m := range qualified.FindAllStringSubmatch(string(page), -1) {
		check(m[1])
	}
	// The left column of the tables.
	_, section, _ := strings.Cut(string(page), "\n## asynq, line by line\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, other := range []string{"Dashboard", "Semaphore"} { // of modules that are not in go.mod
		before, rest, _ := strings.Cut(section, "\n### "+other+"\n")
		_, after, _ := strings.Cut(rest, "\n### ")
		section = before + "\n### " + after
	}
	code, word := regexp.MustCompile("`[^`]+`"), regexp.MustCompile(`\b[A-Z]\w*[a-z]\w*`)
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, span := range code.FindAllString(cells[1], -1) {
				for _, name := range word.FindAllString(span, -1) {
					check(name)
				}
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d names of asynq were found", n)
	}
}
