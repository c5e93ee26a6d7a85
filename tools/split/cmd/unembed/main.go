// unembed makes an embedded field a named one: unembed DIR Type embedded newname
package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"os"
	"sort"

	"golang.org/x/tools/go/packages"
)

func main() {
	dir, typ, emb, name := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	cfg := &packages.Config{Mode: packages.LoadAllSyntax, Dir: dir, Tests: true, Env: append(os.Environ(), "GOWORK=off")}
	pkgs, err := packages.Load(cfg, ".")
	if err != nil {
		panic(err)
	}
	ins := map[string]map[int]string{}
	add := func(f string, off int, s string) {
		if ins[f] == nil {
			ins[f] = map[int]string{}
		}
		ins[f][off] = s
	}
	for _, p := range pkgs {
		for _, e := range p.Errors {
			fmt.Println(e)
		}
		for _, f := range p.Syntax {
			ast.Inspect(f, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				s := p.TypesInfo.Selections[sel]
				if s == nil {
					return true
				}
				t := s.Recv()
				for i, idx := range s.Index() {
					if i == len(s.Index())-1 {
						break
					}
					if ptr, ok := t.Underlying().(*types.Pointer); ok {
						t = ptr.Elem()
					}
					st, ok := t.Underlying().(*types.Struct)
					if !ok {
						break
					}
					fld := st.Field(idx)
					if nt, ok := t.(*types.Named); ok && nt.Obj().Name() == typ && fld.Embedded() && fld.Name() == emb {
						pos := p.Fset.Position(sel.X.End())
						add(pos.Filename, pos.Offset, "."+name)
					}
					t = fld.Type()
				}
				return true
			})
		}
	}
	for f, m := range ins {
		b, _ := os.ReadFile(f)
		var offs []int
		for o := range m {
			offs = append(offs, o)
		}
		sort.Sort(sort.Reverse(sort.IntSlice(offs)))
		for _, o := range offs {
			b = append(b[:o:o], append([]byte(m[o]), b[o:]...)...)
		}
		os.WriteFile(f, b, 0o644)
		fmt.Println(f, len(offs))
	}
}
