package core

import (
	"fmt"
	"go/ast"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

var initialisms = []string{"acl", "api", "ascii", "cpu", "css", "dns", "eof", "guid", "html", "http", "https", "id", "ip", "json", "qps", "ram", "rpc", "sla", "smtp", "sql",
	"ssh", "tcp", "tls", "ttl", "udp", "ui", "gid", "uid", "uuid", "uri", "url", "utf8", "vm", "xml", "xmpp", "xsrf", "xss"}

// Export returns the exported form of a name.
func Export(n string) string {
	if ast.IsExported(n) {
		return n
	}
	for _, s := range initialisms {
		rest, ok := strings.CutPrefix(n, s)
		if !ok {
			continue
		}
		if rest == "" || rest[0] >= 'A' && rest[0] <= 'Z' || rest[0] == '_' {
			return strings.ToUpper(s) + rest
		}
		if rest == "s" || strings.HasPrefix(rest, "s") && len(rest) > 1 && rest[1] >= 'A' && rest[1] <= 'Z' {
			return strings.ToUpper(s) + rest
		}
	}
	n = strings.TrimLeft(n, "_")
	r, size := utf8.DecodeRuneInString(n)
	return string(unicode.ToUpper(r)) + n[size:]
}

// aliased says whether a ref by name goes by an alias in the source package.
func (w *World) aliased(o *Obj) bool {
	return !o.Member && w.Plan.Alias[o.Name] && o.Unit != nil && o.Unit.Pkg != w.Source && !o.Unit.Pkg.XTest && !o.Unit.File.Test
}

// sees says whether code of p uses o under its package's own name without qualifier (same package).
func samePkg(a, b *Pkg) bool { return a.Dir == b.Dir && a.XTest == b.XTest }

func (w *World) visible(p *Pkg, o *Obj) bool {
	if o.Unit == nil {
		return true
	}
	return samePkg(p, o.Unit.Pkg) || o.copies[p.String()] != nil
}

type Finding struct {
	Kind, Text string
	Group      string
	Fatal      bool
}

type Report struct {
	World    *World
	Finds    []Finding
	Exports  []*Obj
	TestOnly []*Obj
}

func (r *Report) add(kind, group string, fatal bool, format string, a ...any) {
	r.Finds = append(r.Finds, Finding{kind, fmt.Sprintf(format, a...), group, fatal})
}

func (r *Ref) at() string { return fmt.Sprintf("%s:%d", r.File.Rel, r.File.line(r.Off)) }

// throughAlias says whether a ref needs no export of its object, because the alias in the source package serves it.
func (w *World) throughAlias(r *Ref) bool {
	if !w.aliased(r.Obj) || r.Unit == nil {
		return false
	}
	p := r.Unit.Pkg
	if samePkg(p, w.Source) {
		return true
	}
	// users outside and tests from outside keep the root's name
	return r.Qual >= 0 && (p.Client || p.XTest) || p.XTest && p.Dir == w.Source.Dir
}

// Analyze finds what must be exported, and what stands in the way.
func (w *World) Analyze() *Report {
	rep := &Report{World: w}
	for _, p := range w.Problems {
		rep.add("PROBLEM", "", false, "%s", p)
	}
	need := func(o *Obj, r *Ref, prod bool) {
		g := o.Root()
		if ast.IsExported(o.Name) {
			return
		}
		g.Need = true
		g.Prod = g.Prod || prod
		if r != nil && len(g.Why) < 50 {
			g.Why = append(g.Why, r)
		}
	}
	wrongUsers := map[*Unit][]string{}
	// aliased names that are unexported need export where the alias refers to them
	for _, o := range w.ObjOrder {
		if o.Unit != nil && w.aliased(o) {
			need(o, nil, true)
		}
	}
	for _, o := range w.ObjOrder {
		if o.Unit == nil {
			continue
		}
		for _, r := range o.Refs {
			if r.Unit == nil || r.Def || w.visible(r.Unit.Pkg, o) {
				continue
			}
			if w.throughAlias(r) {
				continue
			}
			up, op := r.Unit.Pkg, o.Unit.Pkg
			inTest, helper := r.File.Test, o.Unit.File.Test
			switch {
			case helper:
				if r.File.WasX && op.Dir == up.Dir && ast.IsExported(o.Name) {
					break // as before
				}
				if op.Dir == up.Dir && up.XTest && !op.XTest {
					rep.add("TEST CROSSING", unitLabel(o), false, "%s %s (%s): may be exported from the in-package test file", r.at(), r.Unit.Name(), up)
					need(o, r, false)
				} else {
					rep.add("TEST CROSSING", unitLabel(o), false, "%s %s (%s) uses %s", r.at(), r.Unit.Name(), up, o.Disp)
				}
			case inTest:
				if !up.XTest && !up.Client && op.Rank > up.Rank {
					rep.add("TEST WRONG WAY", unitLabel(o), false, "%s %s (%s) uses %s", r.at(), r.Unit.Name(), up, o.Disp)
				} else {
					need(o, r, false)
				}
			default:
				if !up.Client && op.Rank > up.Rank {
					rep.add("WRONG WAY", unitLabel(o), true, "%s %s (%s) uses %s", r.at(), r.Unit.Name(), up, o.Disp)
					wrongUsers[r.Unit] = append(wrongUsers[r.Unit], o.Disp)
				}
				need(o, r, true)
			}
		}
		// methods
		if o.Unit.Recv != "" && o.method {
			for _, t := range w.ObjOrder {
				if !t.Member && t.Name == o.Unit.Recv && t.Unit != nil && t.Unit.File.WasX == o.Unit.File.WasX && !samePkg(t.Unit.Pkg, o.Unit.Pkg) {
					rep.add("METHOD AWAY", fmt.Sprintf("%s (%s, %s)", t.Disp, t.Unit.Pos(), t.Unit.Pkg), !o.Unit.File.Test, "%s %s (%s)", o.Unit.Pos(), o.Disp, o.Unit.Pkg)
				}
			}
		}
	}
	for u, names := range wrongUsers {
		n := len(names)
		sort.Strings(names)
		rep.add("WRONG WAY USERS", "", false, "%3d uses by %s (%s, %s): %s", n, u.Name(), u.Pos(), u.Pkg, strings.Join(slices.Compact(names), " "))
	}
	sort.SliceStable(rep.Finds, func(i, j int) bool {
		a, b := rep.Finds[i], rep.Finds[j]
		return a.Kind == "WRONG WAY USERS" && b.Kind == a.Kind && a.Text > b.Text
	})
	for _, pr := range w.pairs {
		a, b := pr[0], pr[1]
		if a.Unit != nil && b.Unit != nil && !samePkg(a.Unit.Pkg, b.Unit.Pkg) {
			need(a, nil, !a.Unit.File.Test && !b.Unit.File.Test)
		}
	}
	for i := range w.Unkeyed {
		in := &w.Unkeyed[i]
		if in.Field != nil && in.Unit != nil && in.Type.Unit != nil && !samePkg(in.Unit.Pkg, in.Type.Unit.Pkg) {
			need(in.Field, nil, !in.File.Test)
		}
	}
	// pinned
	for _, o := range w.ObjOrder {
		if w.Pins != nil {
			if n := w.Pins[pinKey(o)]; n != "" {
				g := o.Root()
				g.Need, g.New = true, n
			}
		}
	}
	// new names
	groups := map[*Obj][]*Obj{}
	for _, o := range w.ObjOrder {
		g := o.Root()
		groups[g] = append(groups[g], o)
	}
	used := map[string]bool{}
	for g, os := range groups {
		renamed := ""
		for _, o := range os {
			for _, k := range []string{o.Disp, o.Owner + "." + o.Name} {
				if n := w.Plan.Rename[k]; n != "" {
					used[k] = true
					if renamed != "" && renamed != n {
						rep.add("CONFLICT", "", true, "%s is renamed to %s and to %s (they are renamed together)", o.Disp, renamed, n)
					}
					renamed = n
				}
			}
		}
		if g.New != "" {
			continue
		}
		if renamed != "" {
			g.New = renamed
			if g.Need && !ast.IsExported(renamed) {
				rep.add("CONFLICT", "", true, "%s must be exported, but is renamed to %s", g.Disp, renamed)
			}
		} else if g.Need {
			g.New = Export(g.Name)
		}
		if ast.IsExported(g.Name) && g.New == g.Name {
			g.New = ""
		}
	}
	for k := range w.Plan.Rename {
		if !used[k] {
			rep.add("PROBLEM", "", false, "rename %s: no such name", k)
		}
	}
	for _, o := range w.ObjOrder {
		g := o.Root()
		if debugWhy != "" && o.Name == debugWhy {
			fmt.Printf("why %s %s root %s %s need %v:", o.Disp, o.Key, g.Disp, g.Key, g.Need)
			for _, r := range g.Why {
				fmt.Print(" ", r.at(), " ", r.Obj.Disp)
			}
			fmt.Println()
		}
		if g.Need && g.New != "" && o.Unit != nil {
			if g.Prod {
				rep.Exports = append(rep.Exports, o)
			} else {
				rep.TestOnly = append(rep.TestOnly, o)
			}
		}
	}
	w.conflicts(rep)
	w.others(rep)
	return rep
}

func unitLabel(o *Obj) string {
	return fmt.Sprintf("%s (%s, %s)", o.Unit.Name(), o.Unit.Pos(), o.Unit.Pkg)
}

func pinKey(o *Obj) string {
	x := ""
	if o.Unit != nil && o.Unit.File.WasX {
		x = "x "
	}
	return x + o.Disp
}

var debugWhy = os.Getenv("MOVER_WHY")

func (w *World) conflicts(rep *Report) {
	// top-level names
	type holder struct {
		o     *Obj
		where string
	}
	byPkg := map[string]map[string]holder{}
	for _, p := range w.Pkgs {
		m := map[string]holder{}
		byPkg[p.String()] = m
		if !p.Source && p.Existing {
			for n := range w.existing[p.Path] {
				m[n] = holder{nil, "of the existing package"}
			}
		}
	}
	for _, o := range w.ObjOrder {
		if o.Member || o.Unit == nil {
			continue
		}
		p := o.Unit.Pkg
		m := byPkg[p.String()]
		if m == nil {
			m = map[string]holder{}
			byPkg[p.String()] = m
		}
		n := o.NewName()
		if h, ok := m[n]; ok {
			if h.o != nil && h.o.Root() == o.Root() {
				continue
			}
			where := h.where
			if h.o != nil {
				where = h.o.Disp + " " + h.o.Unit.Pos()
			}
			rep.add("CONFLICT", "", true, "%s: %s (%s) would be %s, as is %s", p, o.Disp, o.Unit.Pos(), n, where)
			continue
		}
		m[n] = holder{o, ""}
	}
	for _, o := range w.ObjOrder {
		if o.Member {
			continue
		}
		for p, u := range o.copies {
			if h, ok := byPkg[p][o.NewName()]; ok && h.o != o {
				where := h.where
				if h.o != nil {
					where = h.o.Unit.Pos()
				}
				rep.add("CONFLICT", "", true, "%s: the copy of %s (%s) meets %s", p, o.Disp, u.Orig.Pos(), where)
			}
		}
		if len(o.copies) > 0 {
			n := 0
			for _, r := range o.Refs {
				if !r.Def && r.Unit != nil && samePkg(r.Unit.Pkg, o.Unit.Pkg) {
					n++
				}
			}
			if n == 0 {
				rep.add("PROBLEM", "", false, "%s (%s) is copied, and %s does not use it any more: decl instead of copy", o.Disp, o.Unit.Pos(), o.Unit.Pkg)
			}
		}
	}
	// members
	seen := map[string]bool{}
	for _, o := range w.ObjOrder {
		g := o.Root()
		if !o.Member || g.New == "" {
			continue
		}
		say := func(t types.Type, where string) {
			if t == nil {
				return
			}
			x, idx, _ := types.LookupFieldOrMethod(t, true, w.tpkgOf(o), g.New)
			if x == nil {
				return
			}
			if other := w.obj(o.Unit.File.Fset, x); other != nil && (other.Root() == g || other.NewName() != g.New) {
				return
			}
			k := fmt.Sprint(o.Disp, g.New, types.TypeString(t, qualNone))
			if seen[k] {
				return
			}
			seen[k] = true
			how := ""
			if len(idx) > 1 {
				how = " (by embedding)"
			}
			rep.add("CONFLICT", "", true, "%s would be %s, which %s has already%s %s", o.Disp, g.New, types.TypeString(t, qualNone), how, where)
		}
		if v := o.T; v != nil {
			if f, ok := v.(*types.Func); ok {
				say(f.Type().(*types.Signature).Recv().Type(), o.Unit.Pos())
			}
		}
		for _, r := range o.Refs {
			say(r.recv, r.at())
		}
	}
	// a field beside a method or field of its own struct
	byOwner := map[string]*Obj{}
	for _, o := range w.ObjOrder {
		if !o.Member || o.Owner == "" || strings.HasPrefix(o.Owner, "(") || o.Unit == nil || o.Unit.File.WasX {
			continue
		}
		// nested anonymous structs share the owner: compare positions only for renamed
		k := o.Owner + "." + o.NewName()
		if a := byOwner[k]; a != nil && a.Root() != o.Root() {
			if a.Root().New != "" || o.Root().New != "" {
				rep.add("CONFLICT", "", false, "%s (%s) and %s (%s) would both be %s (fine if one stands in a struct inside)", a.Disp, a.Unit.Pos(), o.Disp, o.Unit.Pos(), k)
			}
		} else {
			byOwner[k] = o
		}
	}
	// qualifiers and imports
	top := map[string]map[string]*Obj{}
	for _, o := range w.ObjOrder {
		if o.Member || o.Unit == nil {
			continue
		}
		// an in-package test file's names count for the package too
		k := o.Unit.Pkg.String()
		if top[k] == nil {
			top[k] = map[string]*Obj{}
		}
		top[k][o.NewName()] = o
	}
	once := map[string]bool{}
	check := func(f *File, u *Unit, q, path string, ref *Ref) {
		if o := top[u.Pkg.String()][q]; o != nil {
			k := u.Pkg.String() + " " + q
			if !once[k] {
				once[k] = true
				rep.add("SHADOW", "declaration "+o.Disp+" of "+u.Pkg.String(), true, "%s has the name of the package %s, which %s imports", o.Unit.Pos(), path, u.Out)
			}
		}
		if !u.Pkg.Source && u.Pkg.Existing && w.existing[u.Pkg.Path][q] {
			rep.add("SHADOW", "declaration "+q+" of "+u.Pkg.String(), true, "has the name of the package %s, which %s imports", path, u.Out)
		}
		if ref == nil {
			return
		}
		if f.tpkg == nil {
			return
		}
		sc := f.tpkg.Scope().Innermost(ref.pos)
		if sc == nil {
			return
		}
		_, found := sc.LookupParent(q, ref.pos)
		if found == nil || found.Parent() == types.Universe {
			return
		}
		if pn, ok := found.(*types.PkgName); ok {
			if pn.Imported().Path() != path {
				rep.add("SHADOW", "import "+pn.Imported().Path()+" in "+f.Rel, true, "%s needs %s under the same name", ref.at(), path)
			}
			return
		}
		if found.Parent() == f.tpkg.Scope() {
			return // see above
		}
		if s := w.shadowObjs[w.key(f.Fset, found.Pos())]; s != nil && w.Plan.Shadow[s.name] != "" {
			return // is renamed
		}
		rep.add("SHADOW", fmt.Sprintf("%s %s:%d", q, f.Rel, f.line(f.off(found.Pos()))), true, "%s needs %s (%s)", ref.at(), path, ref.Unit.Name())
	}
	for _, o := range w.ObjOrder {
		if o.Member {
			continue
		}
		for _, r := range o.Refs {
			if r.Unit == nil || o.Unit == nil || r.Def {
				continue
			}
			if q, path := w.qualifier(r); q != "" {
				check(r.File, r.Unit, q, path, r)
			} else if n := o.NewName(); n != o.Name && r.Qual < 0 && r.File.tpkg != nil {
				if sc := r.File.tpkg.Scope().Innermost(r.pos); sc != nil {
					if _, found := sc.LookupParent(n, r.pos); found != nil && found.Parent() != types.Universe && found.Parent() != r.File.tpkg.Scope() {
						rep.add("SHADOW", fmt.Sprintf("%s %s", n, w.key(r.File.Fset, found.Pos())), true, "%s needs the new name of %s", r.at(), o.Disp)
					}
				}
			}
		}
	}
	for _, im := range w.Imps {
		if im.Unit != nil && im.File.Of {
			if t := top[im.Unit.Pkg.String()]; t != nil {
				o := t[im.Name]
				if o != nil && im.Path != im.Unit.Pkg.Path {
					check(im.File, im.Unit, im.Name, im.Path, nil)
				}
			}
		}
	}
	// renamed locals
	for _, s := range w.shadowObjs {
		_ = s
	}
	w.cycles(rep)
}

func qualNone(p *types.Package) string { return "" }

func (w *World) tpkgOf(o *Obj) *types.Package {
	if o.T != nil {
		return o.T.Pkg()
	}
	return nil
}

// qualifier returns the name of the package that must stand before a ref, and its path; "" for none.
func (w *World) qualifier(r *Ref) (name, path string) {
	o := r.Obj
	if o.Member || o.Unit == nil || r.Unit == nil {
		return "", ""
	}
	from, at := r.Unit.Pkg, o.Unit.Pkg
	if w.throughAlias(r) {
		if samePkg(from, w.Source) {
			return "", ""
		}
		return w.importName(r.File, w.Source), w.Source.Path
	}
	if w.visible(from, o) {
		return "", ""
	}
	if o.Unit.File.Test && at.Dir != from.Dir {
		return "", "" // cannot be imported: left as it is
	}
	if at.XTest {
		return "", ""
	}
	return w.importName(r.File, at), at.Path
}

// importName is the name under which a file imports a package.
func (w *World) importName(f *File, p *Pkg) string {
	for _, s := range f.AST.Imports {
		if s.Name != nil && s.Name.Name != "_" && strings.Trim(s.Path.Value, "\"`") == p.Path {
			return s.Name.Name
		}
	}
	return p.Name
}

// cycles checks the imports of the module as they would be.
func (w *World) cycles(rep *Report) {
	g := map[string]map[string]string{}
	edge := func(a, b, why string) {
		if a == b {
			return
		}
		if g[a] == nil {
			g[a] = map[string]string{}
		}
		if g[a][b] == "" {
			g[a][b] = why
		}
	}
	inMod := func(p string) bool { return p == w.Module || strings.HasPrefix(p, w.Module+"/") }
	for a, m := range w.Imports {
		if a == w.Source.Path {
			continue
		}
		for b := range m {
			if inMod(b) {
				edge(a, b, "today")
			}
		}
	}
	for _, im := range w.Imps {
		if im.File.Of && !im.File.Test && im.Unit != nil && inMod(im.Path) && im.Path != w.Source.Path {
			edge(im.Unit.Pkg.Path, im.Path, im.Unit.Pos()+" "+im.Unit.Name())
		}
	}
	for _, o := range w.ObjOrder {
		for _, r := range o.Refs {
			if r.File.Test || r.Def {
				continue
			}
			if _, p := w.qualifier(r); p != "" && r.Unit != nil {
				edge(r.Unit.Pkg.Path, p, r.at()+" "+r.Unit.Name())
			}
		}
	}
	for a := range w.Plan.Alias {
		for _, o := range w.ObjOrder {
			if o.Name == a && w.aliased(o) {
				edge(w.Source.Path, o.Unit.Pkg.Path, "alias "+a)
			}
		}
	}
	state := map[string]int{}
	var stack []string
	var visit func(a string)
	visit = func(a string) {
		state[a] = 1
		stack = append(stack, a)
		var to []string
		for b := range g[a] {
			to = append(to, b)
		}
		sort.Strings(to)
		for _, b := range to {
			if state[b] == 1 {
				i := 0
				for stack[i] != b {
					i++
				}
				var s []string
				for j := i; j < len(stack); j++ {
					next := b
					if j+1 < len(stack) {
						next = stack[j+1]
					}
					s = append(s, fmt.Sprintf("%s → %s (%s)", stack[j], next, g[stack[j]][next]))
				}
				rep.add("CYCLE", "", true, "%s", strings.Join(s, "; "))
			} else if state[b] == 0 {
				visit(b)
			}
		}
		stack = stack[:len(stack)-1]
		state[a] = 2
	}
	var all []string
	for a := range g {
		all = append(all, a)
	}
	sort.Strings(all)
	for _, a := range all {
		if state[a] == 0 {
			visit(a)
		}
	}
}

var wordRE = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)

func (w *World) others(rep *Report) {
	// exported names of the source package that go away
	outside := map[*Obj]int{}
	for _, o := range w.ObjOrder {
		if o.Member || o.Unit == nil || o.Unit.File.Test || o.Unit.Pkg == w.Source || !ast.IsExported(o.Name) || w.aliased(o) {
			continue
		}
		for _, r := range o.Refs {
			if !r.File.Of {
				outside[o]++
			}
		}
		rep.add("BREAKS", "", false, "%s (%s) leaves the API of %s without an alias; %d uses outside of it (those in this module are rewritten)", o.Disp, o.Unit.Pos(), w.Source.Path, outside[o])
	}
	for _, o := range w.ObjOrder {
		if o.Unit == nil {
			continue
		}
		if w.aliased(o) {
			if _, ok := o.T.(*types.Var); ok {
				for _, r := range o.Refs {
					if r.Write {
						rep.add("ALIAS VAR", "", true, "%s is assigned at %s: a copy in the root would not see it", o.Disp, r.at())
					}
				}
			}
		}
		// API growth
		if g := o.Root(); o.Member && g.New != "" && w.Plan.Alias[o.Owner] && o.Owner != "" {
			rep.add("API GROWTH", o.Owner+" (aliased)", false, "%s becomes %s", o.Disp, g.New)
		}
		// embedded fields of exported types of the root
		if o.Field && ast.IsExported(o.Owner) {
			for _, r := range o.Refs {
				if r.Embed && o.Root() != o && o.Root().Unit != nil && !samePkg(o.Root().Unit.Pkg, o.Unit.Pkg) {
					rep.add("EMBEDDED", "", false, "%s %s embeds %s of %s: its exported members become API", o.Unit.Pos(), o.Owner, o.Root().NewName(), o.Root().Unit.Pkg)
				}
			}
		}
	}
	// strings that name what is renamed
	ren := map[string]*Obj{}
	moved := map[string]*Obj{}
	for _, o := range w.ObjOrder {
		if o.Unit == nil {
			continue
		}
		if o.Root().New != "" && o.Root().New != o.Name {
			ren[o.Name] = o
		}
		if !o.Member && !samePkg(o.Unit.Pkg, w.Source) && o.Unit.Pkg != w.SourceX {
			moved[o.Name] = o
		}
	}
	disp := map[string]*Obj{}
	for _, o := range w.ObjOrder {
		if o.Unit == nil || !o.Member || o.Owner == "" {
			continue
		}
		t := ren[o.Owner]
		if o.NewName() != o.Name || moved[o.Owner] != nil || t != nil && !t.Member {
			disp[o.Disp] = o
		}
	}
	dotted := regexp.MustCompile(`\(?\*?([A-Za-z_]\w*)\)?\.([A-Za-z_]\w*)`)
	for _, l := range w.litStrings {
		for _, m := range dotted.FindAllStringSubmatch(l.Val, -1) {
			o := disp[m[1]+"."+m[2]]
			if o != nil && o.NewName() == o.Name && !strings.Contains(m[0], ")") {
				o = nil // an exported name that the root shows by its alias
			}
			if o == nil && m[1] == w.Source.Name {
				if o = moved[m[2]]; o == nil {
					if o = ren[m[2]]; o != nil && o.Member {
						o = nil
					}
				}
			}
			if o != nil && l.Unit != nil {
				rep.add("STRING", "", false, "%s:%d %s names %s", l.File.Rel, l.File.line(l.Off), l.Val, o.Disp)
				break
			}
		}
		if l.Unit != nil && l.Unit.Pkg.Dir != w.Source.Dir && len(l.Val) > 4 {
			v := strings.Trim(l.Val, "\"`")
			if !strings.ContainsAny(v, " %\n:") && (strings.ContainsAny(v, "/.")) && !strings.HasPrefix(v, ".") || strings.HasPrefix(v, "../") {
				if m, _ := filepath.Glob(filepath.Join(w.SrcDir, v)); len(m) > 0 && filepath.Clean(v) != "." {
					rep.add("RELATIVE PATH", "", false, "%s:%d %s (goes to %s)", l.File.Rel, l.File.line(l.Off), l.Val, l.Unit.Pkg.Dir)
				}
			}
		}
	}
	for _, f := range w.Order {
		if !f.Of {
			continue
		}
		if f.AST.Doc != nil && f.Pkg.Dir != w.Source.Dir {
			rep.add("PROBLEM", "", false, "%s has a package comment, which goes with it to %s", f.Rel, f.Pkg.Dir)
		}
		for _, cg := range f.AST.Comments {
			for _, c := range cg.List {
				if p, ok := strings.CutPrefix(c.Text, "//go:embed "); ok {
					for _, pat := range strings.Fields(p) {
						dir := f.Pkg.Dir
						if u := f.unitAt(f.off(c.Pos())); u != nil {
							dir = u.Pkg.Dir
						}
						if w.embedPath(dir, pat) == "" {
							rep.add("EMBED", "", true, "%s: %s cannot be reached from %s", f.Rel, pat, dir)
						}
					}
				}
				if strings.HasPrefix(c.Text, "//go:linkname") {
					rep.add("LINKNAME", "", false, "%s: %s", f.Rel, c.Text)
				}
			}
		}
		if f.Out != f.Rel {
			if _, err := os.Stat(filepath.Join(w.Dir, f.Out)); err == nil && !w.leaves(f.Out) {
				rep.add("CONFLICT", "", true, "%s exists already", f.Out)
			}
		}
	}
}

func (w *World) leaves(rel string) bool {
	f := w.Files[filepath.Join(w.Dir, rel)]
	return f != nil && f.Of && f.Out != f.Rel
}

func (w *World) embedPath(dir, pat string) string {
	all := ""
	if rest, ok := strings.CutPrefix(pat, "all:"); ok {
		all, pat = "all:", rest
	}
	from, err := filepath.Rel(filepath.Join(w.Dir, dir), filepath.Join(w.SrcDir, pat))
	if err != nil || strings.HasPrefix(from, "..") {
		return ""
	}
	return all + filepath.ToSlash(from)
}

var kinds = []struct{ kind, head string }{
	{"PROBLEM", ""}, {"WRONG WAY", "uses of something higher"}, {"WRONG WAY USERS", "the same by user"}, {"METHOD AWAY", "methods away from their type"}, {"CYCLE", "import cycles"}, {"CONFLICT", ""}, {"SHADOW", ""},
	{"ALIAS VAR", ""}, {"EMBED", ""}, {"EMBEDDED", ""}, {"LINKNAME", ""}, {"BREAKS", "exported names that go without alias"}, {"API GROWTH", "members of aliased types that become exported"},
	{"STRING", "strings that name what is renamed or moved"}, {"RELATIVE PATH", "paths of moved files"},
	{"TEST WRONG WAY", "uses of something higher by in-package tests"}, {"TEST CROSSING", "helpers of tests used from elsewhere"},
}

// Print writes a report.
func (r *Report) Print(verbose bool) {
	w := r.World
	for _, k := range kinds {
		groups := map[string][]string{}
		var order []string
		n := 0
		seen := map[string]bool{}
		for _, f := range r.Finds {
			if f.Kind != k.kind {
				continue
			}
			if seen[f.Group+f.Text] {
				continue
			}
			seen[f.Group+f.Text] = true
			n++
			if groups[f.Group] == nil {
				order = append(order, f.Group)
			}
			groups[f.Group] = append(groups[f.Group], f.Text)
		}
		if n == 0 {
			continue
		}
		fmt.Printf("== %s: %d", k.kind, n)
		if k.head != "" {
			fmt.Printf(" (%s)", k.head)
		}
		if len(order) > 1 || order[0] != "" {
			fmt.Printf(", of %d", len(order))
		}
		fmt.Println()
		sort.SliceStable(order, func(i, j int) bool { return len(groups[order[i]]) > len(groups[order[j]]) })
		limit := 12
		if strings.HasPrefix(k.kind, "TEST") {
			limit = 4
		}
		for _, g := range order {
			if g != "" {
				fmt.Printf("  %3d  %s\n", len(groups[g]), g)
			}
			for i, t := range groups[g] {
				if g != "" && i == limit && !verbose {
					fmt.Printf("         … %d more (-v)\n", len(groups[g])-i)
					break
				}
				if g == "" {
					fmt.Printf("  %s\n", t)
				} else {
					fmt.Printf("         %s\n", t)
				}
			}
		}
	}
	byPkg := map[string][]string{}
	list := func(os []*Obj, mark string) {
		for _, o := range os {
			n := o.Disp
			if o.NewName() != Export(o.Name) {
				n += "→" + o.NewName()
			}
			byPkg[o.Unit.Pkg.String()] = append(byPkg[o.Unit.Pkg.String()], mark+n)
		}
	}
	fmt.Println("== SUMMARY")
	list(r.Exports, "")
	prod := map[string]int{}
	for k, v := range byPkg {
		prod[k] = len(v)
	}
	byPkg = map[string][]string{}
	list(r.TestOnly, "")
	only := byPkg
	byPkg = map[string][]string{}
	list(r.Exports, "")
	pkgs := append([]*Pkg{}, w.Pkgs...)
	pkgs = append(pkgs, w.SourceX)
	for _, p := range w.pkgBy {
		if p.XTest {
			pkgs = append(pkgs, p)
		}
	}
	fmt.Printf("  %-40s %6s %7s %6s %7s %8s %9s\n", "package", "files", "lines", "tests", "lines", "exports", "test-only")
	for _, p := range pkgs {
		var files, lines, tests, tlines int
		fs := map[string]bool{}
		for _, f := range w.Order {
			if !f.Of {
				continue
			}
			for _, u := range f.Units {
				if u.Pkg != p {
					continue
				}
				n := 1
				for _, c := range f.Src[u.Start:u.End] {
					if c == '\n' {
						n++
					}
				}
				if f.Test {
					tlines += n
				} else {
					lines += n
				}
				if !fs[u.Out] {
					fs[u.Out] = true
					if f.Test {
						tests++
					} else {
						files++
					}
				}
			}
		}
		fmt.Printf("  %-40s %6d %7d %6d %7d %8d %9d\n", p, files, lines, tests, tlines, prod[p.String()], len(only[p.String()]))
	}
	for _, p := range pkgs {
		if l := byPkg[p.String()]; len(l) > 0 {
			sort.Strings(l)
			fmt.Printf("  exports of %s (%d): %s\n", p, len(l), wrap(l, verbose))
		}
		if l := only[p.String()]; len(l) > 0 {
			sort.Strings(l)
			fmt.Printf("  exports of %s for tests only (%d): %s\n", p, len(l), wrap(l, verbose))
		}
	}
}

// Count returns the number of findings that forbid to write.
func (r *Report) Count() (fatal, shadows int) {
	for _, f := range r.Finds {
		if f.Fatal && f.Kind == "SHADOW" {
			shadows++
		} else if f.Fatal {
			fatal++
		}
	}
	return fatal, shadows
}

func wrap(l []string, all bool) string {
	if len(l) > 60 && !all {
		return strings.Join(l[:60], " ") + fmt.Sprintf(" … %d more (-v)", len(l)-60)
	}
	return strings.Join(l, " ")
}
