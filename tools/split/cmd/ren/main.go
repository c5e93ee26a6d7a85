// ren renames package-level names: ren -dir DIR PKGPATH old=New …
package main

import (
	"flag"
	"fmt"
	"go/token"
	"os"
	"sort"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	dir := flag.String("dir", ".", "")
	flag.Parse()
	pkg := flag.Arg(0)
	names := map[string]string{}
	for _, a := range flag.Args()[1:] {
		o, n, _ := strings.Cut(a, "=")
		names[o] = n
	}
	fs := token.NewFileSet()
	ps, err := packages.Load(&packages.Config{Dir: *dir, Mode: packages.LoadAllSyntax, Tests: true, Fset: fs, Env: append(os.Environ(), "GOWORK=off")}, "./...")
	if err != nil {
		panic(err)
	}
	type pos struct{ off, n int; new string }
	decl := map[token.Position]string{} // position of the declaration → new name
	for _, p := range ps {
		if strings.Split(p.ID, " ")[0] != pkg || p.Types == nil {
			continue
		}
		for o, n := range names {
			t, m, _ := strings.Cut(o, ".")
			obj := p.Types.Scope().Lookup(t)
			if obj == nil || m != "" {
				continue
			}
			decl[fs.Position(obj.Pos())] = n
		}
	}
	edits := map[string]map[int]pos{}
	for _, p := range ps {
		if p.TypesInfo == nil {
			continue
		}
		for id, obj := range p.TypesInfo.Defs {
			if obj == nil { continue }
			if n, ok := decl[fs.Position(obj.Pos())]; ok && id.Name != n {
				q := fs.Position(id.Pos())
				if edits[q.Filename] == nil { edits[q.Filename] = map[int]pos{} }
				edits[q.Filename][q.Offset] = pos{q.Offset, len(id.Name), n}
			}
		}
		for id, obj := range p.TypesInfo.Uses {
			if obj == nil { continue }
			if n, ok := decl[fs.Position(obj.Pos())]; ok && id.Name != n {
				q := fs.Position(id.Pos())
				if edits[q.Filename] == nil { edits[q.Filename] = map[int]pos{} }
				edits[q.Filename][q.Offset] = pos{q.Offset, len(id.Name), n}
			}
		}
	}
	for f, m := range edits {
		b, _ := os.ReadFile(f)
		var l []pos
		for _, p := range m { l = append(l, p) }
		sort.Slice(l, func(i, j int) bool { return l[i].off > l[j].off })
		for _, p := range l {
			b = append(b[:p.off:p.off], append([]byte(p.new), b[p.off+p.n:]...)...)
		}
		os.WriteFile(f, b, 0o644)
		fmt.Println(f, len(l))
	}
}
