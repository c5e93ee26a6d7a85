package core

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/tools/go/packages"
)

// Move is one call of declmove.
type Move struct {
	Target string
	Names  []string
	After  string // name of the declaration behind which they go; "": the end of the file
	Before string
}

// DeclMove moves declarations within the package in dir. It returns a line of text for each thing to tell.
func DeclMove(dir string, moves []Move, dry bool) ([]string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	w := &World{Dir: dir, SrcDir: dir, Plan: &Plan{}, Source: &Pkg{Dir: ".", Path: "\x00"}}
	root := dir
	for {
		if b, err := os.ReadFile(filepath.Join(root, "go.mod")); err == nil {
			for _, l := range strings.Split(string(b), "\n") {
				if m, ok := strings.CutPrefix(l, "module "); ok {
					w.Module = strings.TrimSpace(m)
				}
			}
			break
		}
		if root = filepath.Dir(root); root == "/" {
			return nil, fmt.Errorf("no go.mod above %s", dir)
		}
	}
	names := map[string]string{}
	if pkgs, err := packages.Load(&packages.Config{Dir: dir, Mode: packages.NeedName | packages.NeedImports, Tests: true}, "."); err == nil {
		for _, p := range pkgs {
			for path, ip := range p.Imports {
				names[path] = ip.Name
			}
		}
	}
	var told []string
	for _, m := range moves {
		t, err := w.declMove(dir, m, names, dry)
		told = append(told, t...)
		if err != nil {
			return told, err
		}
	}
	return told, nil
}

func parseFile(abs, rel string) (*File, error) {
	src, err := os.ReadFile(abs)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	a, err := parser.ParseFile(fset, abs, src, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	return &File{Rel: rel, Abs: abs, Src: src, AST: a, Fset: fset, Test: strings.HasSuffix(rel, "_test.go"), Of: true}, nil
}

func guessName(p string) string {
	b := path.Base(p)
	if len(b) > 1 && b[0] == 'v' && strings.Trim(b[1:], "0123456789") == "" && path.Dir(p) != "." {
		b = path.Base(path.Dir(p))
		if p == "math/rand/v2" {
			return "rand"
		}
	}
	return b
}

// importsOf returns the imports that ranges of a file use.
func importsOf(f *File, names map[string]string, in func(off int) bool) map[imp]bool {
	by := map[string]imp{}
	for _, s := range f.AST.Imports {
		p := strings.Trim(s.Path.Value, "\"`")
		if s.Name != nil {
			if s.Name.Name != "_" && s.Name.Name != "." {
				by[s.Name.Name] = imp{s.Name.Name, p}
			}
			continue
		}
		n := names[p]
		if n == "" {
			n = guessName(p)
		}
		by[n] = imp{"", p}
	}
	res := map[imp]bool{}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := s.X.(*ast.Ident); ok && id.Obj == nil && in(f.off(id.Pos())) {
				if i, ok := by[id.Name]; ok {
					res[i] = true
				}
			}
		}
		return true
	})
	return res
}

func (w *World) declMove(dir string, m Move, names map[string]string, dry bool) ([]string, error) {
	var told []string
	all, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	var files []*File
	byName := map[string]*File{}
	for _, a := range all {
		f, err := parseFile(a, filepath.Base(a))
		if err != nil {
			return nil, err
		}
		w.cut(f)
		files = append(files, f)
		byName[f.Rel] = f
	}
	target := byName[m.Target]
	chosen := map[*Unit]bool{}
	var order []*Unit
	for _, n := range m.Names {
		only := ""
		if a, b, ok := strings.Cut(n, ":"); ok {
			only, n = a, b
		}
		n, methods := strings.TrimSuffix(n, "+"), strings.HasSuffix(n, "+")
		n = strings.NewReplacer("(", "", ")", "", "*", "").Replace(n)
		var hit []*Unit
		in := map[string]bool{}
		for pass := range 2 {
			for _, f := range files {
				if only != "" && f.Rel != only {
					continue
				}
				for _, u := range f.Units {
					is := false
					for _, x := range u.Names {
						is = is || x == n
					}
					if pass == 0 && is {
						hit = append(hit, u)
						in[f.Rel] = true
					}
					if pass == 1 && methods && u.Recv == n {
						hit = append(hit, u)
					}
				}
			}
		}
		if len(in) > 1 {
			return told, fmt.Errorf("%s is declared in several files: write file.go:%s", n, n)
		}
		if len(hit) == 0 {
			return told, fmt.Errorf("no declaration %s", n)
		}
		for _, u := range hit {
			if !chosen[u] && u.File != target {
				chosen[u] = true
				order = append(order, u)
			}
		}
	}
	if len(order) == 0 {
		return append(told, m.Target+": nothing to move"), nil
	}
	// text and imports
	type cutRange struct{ a, b int }
	cuts := map[*File][]cutRange{}
	moved := map[*File][][2]int{}
	doneGroup := map[*Group]bool{}
	var texts []string
	need := map[imp]bool{}
	pkgName := ""
	for _, u := range order {
		f, g := u.File, u.Group
		if pkgName == "" {
			pkgName = f.AST.Name.Name
		}
		if f.AST.Name.Name != pkgName || target != nil && target.AST.Name.Name != pkgName {
			return told, fmt.Errorf("%s is of package %s", u.Name(), f.AST.Name.Name)
		}
		if f.Test != strings.HasSuffix(m.Target, "_test.go") {
			told = append(told, fmt.Sprintf("note: %s goes from %s to %s", u.Name(), f.Rel, m.Target))
		}
		if doneGroup[g] {
			continue
		}
		var sel []*Unit
		for _, x := range g.Units {
			if chosen[x] {
				sel = append(sel, x)
			}
		}
		doneGroup[g] = true
		var text string
		if len(sel) == len(g.Units) {
			text = string(f.Src[g.Start:g.End])
			cuts[f] = append(cuts[f], cutRange{g.Start, g.End})
			moved[f] = append(moved[f], [2]int{g.Start, g.End})
		} else {
			if g.Gen.Tok == token.CONST {
				for _, s := range g.Gen.Specs {
					bad := len(s.(*ast.ValueSpec).Values) == 0
					ast.Inspect(s, func(n ast.Node) bool {
						if id, ok := n.(*ast.Ident); ok && id.Name == "iota" {
							bad = true
						}
						return true
					})
					if bad {
						return told, fmt.Errorf("%s:%d: a group of constants with iota cannot be split", f.Rel, f.line(g.Start))
					}
				}
			}
			if len(sel) == 1 {
				text = textOf(specText(sel[0], nil))
			} else {
				text = g.Gen.Tok.String() + " (\n"
				for _, x := range sel {
					text += string(f.Src[x.Start:x.End]) + "\n"
				}
				text += ")"
			}
			for _, x := range sel {
				cuts[f] = append(cuts[f], cutRange{x.Start, x.End})
				moved[f] = append(moved[f], [2]int{x.Start, x.End})
			}
		}
		texts = append(texts, text)
	}
	inMoved := func(f *File) func(int) bool {
		return func(off int) bool {
			for _, r := range moved[f] {
				if r[0] <= off && off < r[1] {
					return true
				}
			}
			return false
		}
	}
	build := ""
	for f := range moved {
		for i := range importsOf(f, names, inMoved(f)) {
			need[i] = true
		}
		if b := f.buildLine(); b != "" {
			build = b
		}
		if target != nil && f.buildLine() != target.buildLine() {
			told = append(told, fmt.Sprintf("note: %s has build constraint %q, %s %q", f.Rel, f.buildLine(), m.Target, target.buildLine()))
		}
	}
	write := func(rel, text string) error {
		b, err := format.Source([]byte(text))
		if err != nil {
			os.WriteFile("/tmp/declmove.bad.go", []byte(text), 0o644)
			return fmt.Errorf("%s: %w (see /tmp/declmove.bad.go)", rel, err)
		}
		b = []byte(strings.TrimRight(string(b), "\n") + "\n")
		if dry {
			return nil
		}
		return os.WriteFile(filepath.Join(dir, rel), b, 0o644)
	}
	withImports := func(f *File, imports map[imp]bool, body string) string {
		// body is the whole text of the file, with its old import declarations
		o := &outFile{imports: imports}
		block, same := w.importBlock(o, f, body)
		if same {
			return body
		}
		fset := token.NewFileSet()
		a, err := parser.ParseFile(fset, "", body, parser.ParseComments|parser.ImportsOnly)
		if err != nil {
			return body
		}
		at := -1
		type r struct{ a, b int }
		var rs []r
		for _, d := range a.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
				start := g.Pos()
				if g.Doc != nil {
					start = g.Doc.Pos()
				}
				s := fset.Position(start).Offset
				if at < 0 {
					at = s
				}
				rs = append(rs, r{s, fset.Position(g.End()).Offset})
			}
		}
		for i := len(rs) - 1; i >= 0; i-- {
			body = body[:rs[i].a] + body[rs[i].b:]
		}
		if at < 0 {
			at = fset.Position(a.Name.End()).Offset
			for at < len(body) && body[at] != '\n' {
				at++
			}
			block = "\n\n" + block + "\n"
		}
		return body[:at] + block + body[at:]
	}
	// sources
	var srcs []*File
	for f := range moved {
		srcs = append(srcs, f)
	}
	sort.Slice(srcs, func(i, j int) bool { return srcs[i].Rel < srcs[j].Rel })
	results := map[string]string{}
	for _, f := range srcs {
		left := 0
		for _, u := range f.Units {
			if !chosen[u] {
				left++
			}
		}
		if left == 0 {
			free := f.AST.Doc != nil
			for _, c := range f.AST.Comments {
				if !inMoved(f)(f.off(c.Pos())) && !strings.HasPrefix(c.List[0].Text, "//go:build") {
					free = true
				}
			}
			if free {
				told = append(told, "note: comments of "+f.Rel+" that stand by themselves are left in it")
			} else {
				told = append(told, f.Rel+" is empty: removed")
				if !dry {
					if err := os.Remove(f.Abs); err != nil {
						return told, err
					}
				}
				continue
			}
		}
		cs := cuts[f]
		sort.Slice(cs, func(i, j int) bool { return cs[i].a > cs[j].a })
		text := string(f.Src)
		for _, c := range cs {
			text = strings.TrimRight(text[:c.a], " \t") + text[c.b:]
		}
		keep := importsOf(f, names, func(off int) bool { return !inMoved(f)(off) })
		results[f.Rel] = withImports(f, keep, text)
	}
	joined := strings.Join(texts, "\n\n")
	if target == nil {
		text := "package " + pkgName + "\n\n" + joined + "\n"
		if build != "" {
			text = build + "\n\n" + text
		}
		results[m.Target] = withImports(nil, need, text)
	} else {
		for i := range importsOf(target, names, func(int) bool { return true }) {
			need[i] = true
		}
		at := len(target.Src)
		if n := m.After + m.Before; n != "" {
			at = -1
			for _, u := range target.Units {
				for _, x := range u.Names {
					if x == n {
						at = u.Group.End
						if m.Before != "" {
							at = u.Group.Start
						}
					}
				}
			}
			if at < 0 {
				return told, fmt.Errorf("%s has no %s", m.Target, n)
			}
		}
		text := string(target.Src[:at]) + "\n\n" + joined + "\n\n" + string(target.Src[at:])
		results[m.Target] = withImports(target, need, text)
	}
	var rels []string
	for r := range results {
		rels = append(rels, r)
	}
	sort.Strings(rels)
	for _, r := range rels {
		if err := write(r, results[r]); err != nil {
			return told, err
		}
	}
	n := 0
	for _, t := range texts {
		n += strings.Count(t, "\n") + 1
	}
	told = append(told, fmt.Sprintf("%s: %d declarations, %d lines", m.Target, len(order), n))
	return told, nil
}
