// unexp unexports what no other package of a module uses: unexp [-n] [-keep Name,Type.Name,Type.*] [-as Name=new,…] DIR PKG
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"unicode"

	"golang.org/x/tools/go/packages"
)

type edit struct {
	n   int
	new string
}

var always = map[string]bool{
	"Error": true, "Unwrap": true, "Is": true, "As": true, "String": true, "GoString": true, "Format": true,
	"Deadline": true, "Done": true, "Err": true, "Value": true, "Write": true, "Read": true, "Close": true, "Conn": true, "Slot": true,
	"Do": true, "DoContext": true, "DoWithTimeout": true, "ReceiveContext": true, "ReceiveWithTimeout": true, "Send": true, "Flush": true, "Receive": true,
}

func lower(s string) string {
	if strings.ToUpper(s) == s {
		return strings.ToLower(s)
	}
	if s == "IDs" {
		return "ids"
	}
	r := []rune(s)
	i := 0
	for i < len(r) && unicode.IsUpper(r[i]) {
		i++
	}
	if i > 1 {
		i-- // the last begins the next word
	}
	return strings.ToLower(string(r[:i])) + string(r[i:])
}

func main() {
	dry := flag.Bool("n", false, "")
	keepList := flag.String("keep", "", "")
	asList := flag.String("as", "", "")
	only := flag.String("only", "", "output of an earlier run: rename just that, unasked")
	tests := flag.Bool("tests", false, "names that test files declare, too")
	flag.Parse()
	dir, pkg := flag.Arg(0), flag.Arg(1)
	keep, as := map[string]bool{}, map[string]string{}
	for _, k := range strings.Split(*keepList, ",") {
		keep[k] = true
	}
	for _, k := range strings.Split(*asList, ",") {
		if a, b, ok := strings.Cut(k, "="); ok {
			as[a] = b
		}
	}
	onlyNames := map[string]string{}
	pattern, withTests := "./...", true
	if *only != "" {
		b, err := os.ReadFile(*only)
		if err != nil {
			panic(err)
		}
		for _, l := range strings.Split(string(b), "\n") {
			if a, b, ok := strings.Cut(l, " → "); ok {
				onlyNames[a] = b
			}
		}
		pattern, withTests = pkg, false
	}
	fs := token.NewFileSet()
	ps, err := packages.Load(&packages.Config{Dir: dir, Mode: packages.LoadSyntax | packages.NeedForTest | packages.NeedModule, Tests: withTests, Fset: fs, Env: append(os.Environ(), "GOWORK=off")}, pattern)
	if err != nil {
		panic(err)
	}
	for _, p := range ps {
		for _, e := range p.Errors {
			fmt.Println("ERROR", e)
		}
	}
	own := func(p *packages.Package) bool { return p.PkgPath == pkg && !strings.HasSuffix(p.ID, ".test") }
	at := func(p token.Pos) string { q := fs.Position(p); return fmt.Sprintf("%s:%d", q.Filename, q.Offset) }
	type cand struct {
		full, name, new string // full: Type.Name for fields and methods
		obj             types.Object
		typ             *types.Named
		test            bool
	}
	cands := map[string]*cand{}
	add := func(o types.Object, typ *types.Named) {
		full := o.Name()
		if typ != nil {
			full = typ.Obj().Name() + "." + o.Name()
		}
		if !o.Exported() || keep[full] || typ != nil && keep[typ.Obj().Name()+".*"] {
			return
		}
		test := strings.HasSuffix(fs.Position(o.Pos()).Filename, "_test.go")
		if test && !*tests {
			return
		}
		if _, ok := o.(*types.Func); ok && typ != nil && *only == "" && always[o.Name()] {
			if _, forced := as[full]; !forced {
				return
			}
		}
		n := as[full]
		if *only != "" {
			if n = onlyNames[full]; n == "" {
				return
			}
		}
		if n == "" {
			n = lower(o.Name())
		}
		cands[at(o.Pos())] = &cand{full, o.Name(), n, o, typ, test}
	}
	for _, p := range ps {
		if !own(p) {
			continue
		}
		sc := p.Types.Scope()
		for _, name := range sc.Names() {
			o := sc.Lookup(name)
			if o.Exported() && !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Benchmark") && !strings.HasPrefix(name, "Fuzz") {
				add(o, nil)
			}
			tn, ok := o.(*types.TypeName)
			if !ok || tn.IsAlias() {
				continue
			}
			named := tn.Type().(*types.Named)
			for m := range named.Methods() {
				add(m, named)
			}
			if st, ok := named.Underlying().(*types.Struct); ok {
				var rec func(st *types.Struct)
				rec = func(st *types.Struct) {
					for f := range st.Fields() {
						if !f.Embedded() {
							add(f, named)
							if in, ok := f.Type().(*types.Struct); ok {
								rec(in)
							}
						}
					}
				}
				rec(st)
			}
		}
	}
	// used elsewhere
	for _, p := range ps {
		if own(p) || p.TypesInfo == nil {
			continue
		}
		for id, o := range p.TypesInfo.Uses {
			_ = id
			if o == nil {
				continue
			}
			delete(cands, at(origin(o).Pos()))
		}
	}
	// interfaces of other packages, and exported field or method promoted through embedded alias: reported by the compiler
	bad := map[string]string{}
	edits := map[string]map[int]edit{}
	put := func(pos token.Pos, n int, s string) {
		q := fs.Position(pos)
		if edits[q.Filename] == nil {
			edits[q.Filename] = map[int]edit{}
		}
		edits[q.Filename][q.Offset] = edit{n, s}
	}
	var posByCand = map[string][]token.Pos{}
	for _, p := range ps {
		if !own(p) {
			continue
		}
		sc := p.Types.Scope()
		note := func(id *ast.Ident, o types.Object) {
			key := at(origin(o).Pos())
			c := cands[key]
			if c == nil || id.Name != c.name {
				return
			}
			posByCand[key] = append(posByCand[key], id.Pos())
		}
		for id, o := range p.TypesInfo.Defs {
			if o != nil {
				note(id, o)
			}
		}
		for id, o := range p.TypesInfo.Uses {
			note(id, o)
			c := cands[at(origin(o).Pos())]
			if c == nil || c.typ != nil {
				continue
			}
			in := sc.Innermost(id.Pos())
			if in == nil {
				continue
			}
			if _, other := in.LookupParent(c.new, id.Pos()); other != nil {
				bad[c.full] = fmt.Sprintf("%s is %v at %v", c.new, other, fs.Position(id.Pos()))
			}
		}
		for sel, s := range p.TypesInfo.Selections {
			c := cands[at(origin(s.Obj()).Pos())]
			if c == nil {
				continue
			}
			if o, _, _ := types.LookupFieldOrMethod(s.Recv(), true, p.Types, c.new); o != nil {
				bad[c.full] = fmt.Sprintf("%v has %v at %v", s.Recv(), o, fs.Position(sel.Pos()))
			}
		}
		for _, c := range cands {
			if c.typ == nil {
				if o := sc.Lookup(c.new); o != nil {
					bad[c.full] = fmt.Sprintf("%s is declared at %v", c.new, fs.Position(o.Pos()))
				}
				if token.IsKeyword(c.new) || types.Universe.Lookup(c.new) != nil {
					bad[c.full] = c.new + " is predeclared"
				}
				for _, f := range p.Syntax {
					if fsc := p.TypesInfo.Scopes[f]; fsc != nil && fsc.Lookup(c.new) != nil {
						bad[c.full] = c.new + " is imported in " + fs.Position(f.Pos()).Filename
					}
				}
				continue
			}
			if token.IsKeyword(c.new) {
				bad[c.full] = c.new + " is a keyword"
			}
			if tn, ok := sc.Lookup(c.typ.Obj().Name()).(*types.TypeName); ok {
				if o, _, _ := types.LookupFieldOrMethod(types.NewPointer(tn.Type()), true, p.Types, c.new); o != nil {
					bad[c.full] = fmt.Sprintf("has %v", o)
				}
			}
		}
	}
	if *only != "" {
		bad = map[string]string{}
	}
	var done []*cand
	for key, c := range cands {
		if bad[c.full] != "" {
			continue
		}
		done = append(done, c)
		for _, pos := range posByCand[key] {
			put(pos, len(c.name), c.new)
		}
	}
	sort.Slice(done, func(i, j int) bool { return done[i].full < done[j].full })
	// comments
	words := map[string]string{} // unambiguous words of two humps
	clash := map[string]bool{}
	for _, c := range done {
		if old, ok := words[c.name]; ok && old != c.new {
			clash[c.name] = true
		}
		words[c.name] = c.new
	}
	stillUp := map[string]bool{}
	for _, p := range ps {
		for id, o := range p.TypesInfo.Defs {
			if o != nil && o.Exported() && cands[at(o.Pos())] == nil {
				stillUp[id.Name] = true
			}
		}
	}
	for full := range bad {
		stillUp[full[strings.LastIndex(full, ".")+1:]] = true
	}
	humps := regexp.MustCompile(`^[A-Z][a-z0-9]+([A-Z][A-Za-z0-9]*)+$`)
	isDone := map[string]*cand{}
	for _, c := range done {
		isDone[at(c.obj.Pos())] = c
	}
	for _, p := range ps {
		if !own(p) {
			continue
		}
		for _, f := range p.Syntax {
			lead := func(g *ast.CommentGroup, id *ast.Ident) {
				o := p.TypesInfo.Defs[id]
				if g == nil || o == nil {
					return
				}
				c := isDone[at(o.Pos())]
				if c == nil {
					return
				}
				t := g.List[0].Text
				if strings.HasPrefix(t, "// "+c.name) && (len(t) == 3+len(c.name) || !isWord(rune(t[3+len(c.name)]))) {
					put(g.List[0].Pos()+3, len(c.name), c.new)
				}
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					lead(n.Doc, n.Name)
				case *ast.GenDecl:
					for _, s := range n.Specs {
						switch s := s.(type) {
						case *ast.TypeSpec:
							lead(n.Doc, s.Name)
							lead(s.Doc, s.Name)
						case *ast.ValueSpec:
							for _, id := range s.Names {
								lead(n.Doc, id)
								lead(s.Doc, id)
							}
						}
					}
				case *ast.Field:
					for _, id := range n.Names {
						lead(n.Doc, id)
						lead(n.Comment, id)
					}
				}
				return true
			})
			word := regexp.MustCompile(`\b[A-Z][A-Za-z0-9]*\b`)
			for _, g := range f.Comments {
				for _, c := range g.List {
					for _, m := range word.FindAllStringIndex(c.Text, -1) {
						w := c.Text[m[0]:m[1]]
						if new, ok := words[w]; ok && humps.MatchString(w) && !clash[w] && !stillUp[w] &&
							!(m[0] > 0 && c.Text[m[0]-1] == '.' && m[0] > 1 && isWord(rune(c.Text[m[0]-2]))) {
							put(c.Pos()+token.Pos(m[0]), m[1]-m[0], new)
						}
						// Type.Member
						rest := c.Text[m[1]:]
						if strings.HasPrefix(rest, ".") {
							if mm := word.FindStringIndex(rest[1:]); mm != nil && mm[0] == 0 {
								member := rest[1 : 1+mm[1]]
								for _, d := range done {
									if d.full == w+"."+member {
										put(c.Pos()+token.Pos(m[1]+1), len(member), d.new)
									}
								}
							}
						}
					}
				}
			}
		}
	}
	for _, c := range done {
		fmt.Println(c.full, "→", c.new)
	}
	var bads []string
	for n, why := range bad {
		bads = append(bads, "LEFT "+n+": "+why)
	}
	sort.Strings(bads)
	fmt.Println(strings.Join(bads, "\n"))
	fmt.Println(len(done), "renamed,", len(bads), "left")
	if *dry {
		return
	}
	for f, m := range edits {
		b, _ := os.ReadFile(f)
		var offs []int
		for o := range m {
			offs = append(offs, o)
		}
		sort.Sort(sort.Reverse(sort.IntSlice(offs)))
		for _, o := range offs {
			b = append(b[:o:o], append([]byte(m[o].new), b[o+m[o].n:]...)...)
		}
		if err := os.WriteFile(f, b, 0o644); err != nil {
			panic(err)
		}
	}
	_ = filepath.Base
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

func origin(o types.Object) types.Object {
	switch o := o.(type) {
	case *types.Var:
		return o.Origin()
	case *types.Func:
		return o.Origin()
	}
	return o
}
