// house prints how the packages of a module keep house.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/tools/go/packages"
)

type stat struct {
	name                        string
	files, lines, tests, tlines int
	big                         []string
	largest                     string
	largestN                    int
	long, tlong                 int
	knot                        []string
	away                        []string
	exported                    int
	largestT                    string
	largestTN                   int
	api                         []string
	members                     int
	edges                       map[string]map[string]string
}

func main() {
	dir := flag.String("dir", ".", "root of the module")
	v := flag.Bool("v", false, "list knots with their uses, exported names, long lines")
	limit := flag.Int("max", 500, "lines of a file that are too many")
	flag.Parse()
	abs, err := filepath.Abs(*dir)
	die(err)
	cfg := &packages.Config{Dir: abs, Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports |
		packages.NeedExportFile | packages.NeedCompiledGoFiles}
	pkgs, err := packages.Load(cfg, "./...")
	die(err)
	var all []*stat
	total := &stat{name: "TOTAL"}
	for _, p := range pkgs {
		for _, e := range p.Errors {
			fmt.Fprintln(os.Stderr, e)
		}
		if len(p.GoFiles)+len(p.IgnoredFiles) == 0 {
			continue
		}
		var pdir string
		for _, g := range append(append([]string{}, p.GoFiles...), p.IgnoredFiles...) {
			pdir = filepath.Dir(g)
		}
		rel, _ := filepath.Rel(abs, pdir)
		s := &stat{name: filepath.ToSlash(rel), edges: map[string]map[string]string{}}
		names, _ := filepath.Glob(filepath.Join(pdir, "*.go"))
		for _, n := range names {
			b, err := os.ReadFile(n)
			die(err)
			base := filepath.Base(n)
			lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
			test := strings.HasSuffix(n, "_test.go")
			for i, l := range lines {
				if width(l) > 120 {
					if test {
						s.tlong++
					} else {
						s.long++
					}
					if *v {
						fmt.Printf("long: %s/%s:%d %d\n", s.name, base, i+1, width(l))
					}
				}
			}
			if test {
				s.tests++
				s.tlines += len(lines)
				if len(lines) > s.largestTN {
					s.largestT, s.largestTN = base, len(lines)
				}
			} else {
				s.files++
				s.lines += len(lines)
				if len(lines) > s.largestN {
					s.largest, s.largestN = base, len(lines)
				}
			}
			if len(lines) > *limit {
				s.big = append(s.big, fmt.Sprintf("%s %d", base, len(lines)))
			}
		}
		s.house(p)
		all = append(all, s)
		total.files += s.files
		total.lines += s.lines
		total.tests += s.tests
		total.tlines += s.tlines
		total.long += s.long
		total.tlong += s.tlong
		total.exported += s.exported
		total.members += s.members
		total.away = append(total.away, s.away...)
		if s.largestN > total.largestN {
			total.largestN, total.largest = s.largestN, s.name+"/"+s.largest
		}
		if s.largestTN > total.largestTN {
			total.largestTN, total.largestT = s.largestTN, s.name+"/"+s.largestT
		}
		for _, b := range s.big {
			total.big = append(total.big, s.name+"/"+b)
		}
		if len(s.knot) > len(total.knot) {
			total.knot = s.knot
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].name < all[j].name })
	fmt.Printf("%-28s %5s %6s %5s %6s %5s  %4s %5s %5s %5s %5s %5s  %s\n", "package", "files", "lines", "tests", "lines", fmt.Sprintf(">%d", *limit), "long", "tlong", "knot", "away",
		"names", "membs", "largest file; largest test")
	row := func(s *stat) {
		lt := ""
		if s.largestT != "" {
			lt = fmt.Sprintf("; %s %d", s.largestT, s.largestTN)
		}
		fmt.Printf("%-28s %5d %6d %5d %6d %5d  %4d %5d %5d %5d %5d %5d  %s %d%s\n", s.name, s.files, s.lines, s.tests, s.tlines, len(s.big), s.long, s.tlong, len(s.knot), len(s.away),
			s.exported, s.members, s.largest, s.largestN, lt)
	}
	for _, s := range all {
		row(s)
	}
	row(total)
	for _, s := range all {
		if len(s.big)+len(s.knot)+len(s.away) == 0 && !*v {
			continue
		}
		fmt.Printf("\n%s\n", s.name)
		if len(s.big) > 0 {
			fmt.Printf("  files of more than %d lines: %s\n", *limit, strings.Join(s.big, ", "))
		}
		if len(s.knot) > 0 {
			fmt.Printf("  largest knot (%d files): %s\n", len(s.knot), strings.Join(s.knot, " "))
			if *v {
				in := map[string]bool{}
				for _, f := range s.knot {
					in[f] = true
				}
				for _, f := range s.knot {
					var to []string
					for t, why := range s.edges[f] {
						if in[t] {
							to = append(to, t+" ("+why+")")
						}
					}
					sort.Strings(to)
					fmt.Printf("    %s → %s\n", f, strings.Join(to, ", "))
				}
			}
		}
		if len(s.away) > 0 {
			fmt.Printf("  methods away from their type's file (%d): %s\n", len(s.away), strings.Join(s.away, ", "))
		}
		if *v && len(s.api) > 0 {
			fmt.Printf("  exported: %s\n", strings.Join(s.api, " "))
		}
	}
}

func (s *stat) house(p *packages.Package) {
	if p.Types == nil {
		return
	}
	for _, n := range p.Types.Scope().Names() {
		if ast.IsExported(n) {
			s.exported++
			s.api = append(s.api, n)
		}
		if tn, ok := p.Types.Scope().Lookup(n).(*types.TypeName); ok && ast.IsExported(n) && !tn.IsAlias() {
			if nt, ok := tn.Type().(*types.Named); ok {
				for i := 0; i < nt.NumMethods(); i++ {
					if nt.Method(i).Exported() {
						s.members++
					}
				}
				if st, ok := nt.Underlying().(*types.Struct); ok {
					for i := 0; i < st.NumFields(); i++ {
						if st.Field(i).Exported() {
							s.members++
						}
					}
				}
			}
		}
	}
	file := func(pos token.Pos) string { return filepath.Base(p.Fset.Position(pos).Filename) }
	for _, f := range p.Syntax {
		from := file(f.Package)
		for _, d := range f.Decls {
			fd, ok := d.(*ast.FuncDecl)
			if !ok || fd.Recv == nil {
				continue
			}
			o, _ := p.TypesInfo.Defs[fd.Name].(*types.Func)
			if o == nil {
				continue
			}
			t := o.Type().(*types.Signature).Recv().Type()
			if pt, ok := t.(*types.Pointer); ok {
				t = pt.Elem()
			}
			if nt, ok := t.(*types.Named); ok && file(nt.Obj().Pos()) != from {
				s.away = append(s.away, fmt.Sprintf("%s:%s.%s (%s)", from, nt.Obj().Name(), fd.Name.Name, file(nt.Obj().Pos())))
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			o := p.TypesInfo.Uses[id]
			if o == nil || o.Pkg() != p.Types || !o.Pos().IsValid() {
				return true
			}
			to := file(o.Pos())
			if to == from {
				return true
			}
			if s.edges[from] == nil {
				s.edges[from] = map[string]string{}
			}
			if s.edges[from][to] == "" {
				s.edges[from][to] = o.Name()
			}
			return true
		})
	}
	s.knot = largest(s.edges)
}

func largest(g map[string]map[string]string) []string {
	index, low := map[string]int{}, map[string]int{}
	on := map[string]bool{}
	var stack, best []string
	n := 0
	var visit func(a string)
	visit = func(a string) {
		n++
		index[a], low[a] = n, n
		stack = append(stack, a)
		on[a] = true
		for b := range g[a] {
			if index[b] == 0 {
				visit(b)
				low[a] = min(low[a], low[b])
			} else if on[b] {
				low[a] = min(low[a], index[b])
			}
		}
		if low[a] == index[a] {
			var c []string
			for {
				b := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				on[b] = false
				c = append(c, b)
				if b == a {
					break
				}
			}
			if len(c) > 1 && len(c) > len(best) {
				best = c
			}
		}
	}
	for a := range g {
		if index[a] == 0 {
			visit(a)
		}
	}
	sort.Strings(best)
	return best
}

func width(l string) int {
	n := 0
	for _, r := range l {
		if r == '\t' {
			n += 4
		} else {
			n++
		}
	}
	return n
}

func die(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
