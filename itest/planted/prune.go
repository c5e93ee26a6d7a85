package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// prune writes an overlay for go test -overlay into the directory to and returns its file. With it, the compiler leaves
// out the bodies of tests of the package in dir that the expression run does not match, because compiling takes most of
// the time of a patch. The bodies become "if false { … }", which keeps their imports in use.
func prune(dir, run, to string) (string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return "", err
	}
	named, err := topLevel(run)
	if err != nil {
		return "", err
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for i, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		pruned, err := without(string(text), named)
		if err != nil {
			return "", err
		}
		if pruned == string(text) {
			continue
		}
		file := filepath.Join(to, fmt.Sprintf("%d_test.go", i))
		if err := os.WriteFile(file, []byte(pruned), 0o600); err != nil {
			return "", err
		}
		overlay.Replace[path] = file
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	file := filepath.Join(to, "overlay.json")
	return file, os.WriteFile(file, text, 0o600)
}

// topLevel returns an expression for the names of top-level tests, without the part of a -run that is for subtests.
func topLevel(run string) (*regexp.Regexp, error) {
	alternatives := strings.Split(run, "|")
	for i, a := range alternatives {
		alternatives[i], _, _ = strings.Cut(a, "/")
	}
	return regexp.Compile(strings.Join(alternatives, "|"))
}

// without returns the text of a test file in which the bodies of tests whose names do not match are not compiled. No
// line moves.
func without(text string, named *regexp.Regexp) (string, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, "", text, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	done := 0
	upTo := func(pos token.Pos) {
		offset := files.Position(pos).Offset
		b.WriteString(text[done:offset])
		done = offset
	}
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || f.Name.Name == "TestMain" || f.Body == nil {
			continue
		}
		switch name := f.Name.Name; {
		case strings.HasPrefix(name, "Test") && !named.MatchString(name), strings.HasPrefix(name, "Benchmark"),
			strings.HasPrefix(name, "Fuzz") && !named.MatchString(name):
			upTo(f.Body.Lbrace + 1)
			b.WriteString(" if false {")
			upTo(f.Body.Rbrace)
			b.WriteString("} ")
		}
	}
	return b.String() + text[done:], nil
}
