// tdeps lists, for each test file of a package, what it uses of the package's non-test files and of other test files.
package main

import (
	"fmt"
	"go/types"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	dir := os.Args[1]
	cfg := &packages.Config{Mode: packages.LoadSyntax | packages.NeedForTest, Dir: dir, Tests: true, Env: append(os.Environ(), "GOWORK=off")}
	pkgs, err := packages.Load(cfg, ".")
	if err != nil {
		panic(err)
	}
	for _, p := range pkgs {
		if p.ForTest == "" || strings.HasSuffix(p.Name, "_test") || strings.HasSuffix(p.ID, ".test") {
			continue
		}
		root := map[string]map[string]int{}
		test := map[string]map[string]int{}
		eng := map[string]int{}
		for id, obj := range p.TypesInfo.Uses {
			f := filepath.Base(p.Fset.Position(id.Pos()).Filename)
			if !strings.HasSuffix(f, "_test.go") || obj == nil || obj.Pkg() == nil {
				continue
			}
			if strings.HasSuffix(obj.Pkg().Path(), "/engine") {
				eng[f]++
				continue
			}
			if obj.Pkg() != p.Types {
				continue
			}
			name := obj.Name()
			switch o := obj.(type) {
			case *types.Func:
				if r := o.Type().(*types.Signature).Recv(); r != nil {
					t := r.Type()
					if pt, ok := t.(*types.Pointer); ok {
						t = pt.Elem()
					}
					if n, ok := t.(*types.Named); ok {
						name = n.Obj().Name() + "." + name
					}
				}
			case *types.Var:
				if o.IsField() {
					name = "." + name
				} else if o.Parent() != p.Types.Scope() {
					continue
				}
			default:
				if obj.Parent() != p.Types.Scope() {
					continue
				}
			}
			df := filepath.Base(p.Fset.Position(obj.Pos()).Filename)
			if df == f {
				continue
			}
			m := root
			if strings.HasSuffix(df, "_test.go") {
				m = test
				name += "@" + strings.TrimSuffix(df, "_test.go")
			}
			if m[f] == nil {
				m[f] = map[string]int{}
			}
			m[f][name]++
		}
		var fs []string
		for f := range root {
			fs = append(fs, f)
		}
		for f := range test {
			if root[f] == nil {
				fs = append(fs, f)
			}
		}
		sort.Strings(fs)
		show := func(m map[string]int) string {
			var l []string
			for n, k := range m {
				l = append(l, fmt.Sprintf("%s:%d", n, k))
			}
			sort.Strings(l)
			return strings.Join(l, " ")
		}
		for _, f := range fs {
			fmt.Printf("== %s engine:%d\n   ROOT %s\n   TEST %s\n", f, eng[f], show(root[f]), show(test[f]))
		}
	}
}
