package core

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/refactor/satisfy"
)

// Pkg is a target package.
type Pkg struct {
	Dir, Path, Name string
	Rank            int
	XTest           bool
	Source          bool // the package that is split
	Existing        bool // had files before
	Client          bool // not of the plan
}

func (p *Pkg) String() string {
	s := p.Dir
	if p.XTest {
		s += " (xtest)"
	}
	return s
}

type File struct {
	Rel    string // to DIR
	Abs    string
	Src    []byte
	AST    *ast.File
	Fset   *token.FileSet
	Test   bool
	Of     bool // of the source package (or its xtest)
	WasX   bool // package x_test
	Pkg    *Pkg // target
	Out    string
	Units  []*Unit
	Groups []*Group
	info   *types.Info
	tpkg   *types.Package
}

func (f *File) off(p token.Pos) int { return f.Fset.Position(p).Offset }
func (f *File) line(off int) int {
	n := 1
	for _, c := range f.Src[:off] {
		if c == '\n' {
			n++
		}
	}
	return n
}

// Group is a top-level declaration.
type Group struct {
	File       *File
	Start, End int // with doc and trailing comment
	Units      []*Unit
	Gen        *ast.GenDecl
}

// Unit is a single top-level declaration: a function, a method, a spec.
type Unit struct {
	File       *File
	Start, End int // of the spec (or of the group, if single)
	Node       ast.Node
	Group      *Group
	Names      []string // of objects, or Type.method
	Recv       string
	Pkg        *Pkg
	Out        string // file, relative to DIR
	Planned    bool
	Orig       *Unit // of a copy
}

func (u *Unit) Name() string {
	if len(u.Names) == 0 {
		return "import"
	}
	return strings.Join(u.Names, ",")
}
func (u *Unit) Pos() string { return fmt.Sprintf("%s:%d", u.File.Rel, u.File.line(u.Start)) }

type Obj struct {
	Key    string
	Name   string
	Disp   string
	Unit   *Unit
	Member bool
	Field  bool
	Owner  string
	T      types.Object
	Refs   []*Ref

	copies map[string]*Unit // by target package

	parent *Obj // union-find
	// of the root of the group:
	Need   bool // must be exported
	Why    []*Ref
	Prod   bool // needed by non-test code
	New    string
	method bool
}

func (o *Obj) Root() *Obj {
	for o.parent != nil {
		if o.parent.parent != nil {
			o.parent = o.parent.parent
		}
		o = o.parent
	}
	return o
}

func (o *Obj) NewName() string {
	if n := o.Root().New; n != "" {
		return n
	}
	return o.Name
}

func union(a, b *Obj) {
	a, b = a.Root(), b.Root()
	if a != b {
		b.parent = a
	}
}

type Ref struct {
	Obj   *Obj
	File  *File
	Unit  *Unit
	Off   int
	Def   bool
	Embed bool // a use that names an embedded field
	Qual  int  // offset where the qualifier begins, -1: none
	recv  types.Type
	pos   token.Pos
	Write bool // assigned to or its address is taken
}

// ImpRef is a use of an imported package.
type ImpRef struct {
	File *File
	Unit *Unit
	Off  int
	End  int // behind the dot
	Name string
	Path string
	Spec string // explicit name or ""
}

type World struct {
	Dir, SrcDir, Module string
	Plan                *Plan
	Source, SourceX     *Pkg
	Pkgs                []*Pkg
	pkgBy               map[string]*Pkg
	Files               map[string]*File
	Order               []*File
	Objs                map[string]*Obj
	ObjOrder            []*Obj
	Imps                []*ImpRef
	pairs               [][2]*Obj // interface method, method
	Problems            []string
	Unkeyed             []Insert
	existing            map[string]map[string]bool // package path → names of other packages of the module
	existingName        map[string]string
	Imports             map[string]map[string]bool // of existing packages of the module, non-test
	shadowObjs          map[string]*shadowed
	Pins                map[string]string
	litStrings          []LitString
	locals              map[string]bool
	Overlay             map[string][]byte
	Quick               bool
	fieldDocs           []docOf
	Clones              []*Unit
	refsOf              map[*Unit][]*Ref
	impsIn              map[*Unit][]*ImpRef
	objsOf              map[*Unit][]*Obj
}

type shadowed struct {
	name string
	file *File
	offs map[int]bool
}

type LitString struct {
	File *File
	Unit *Unit
	Off  int
	Val  string
}

type docOf struct {
	File *File
	Doc  *ast.CommentGroup
	Key  string
}

// Insert is text that is put in.
type Insert struct {
	File *File
	Off  int
	Text func() string
	// for unkeyed literals
	Field *Obj
	Name  string
	Unit  *Unit
	Type  *Obj
}

func (w *World) key(fset *token.FileSet, p token.Pos) string {
	ps := fset.Position(p)
	return fmt.Sprintf("%s:%d", ps.Filename, ps.Offset)
}

const loadMode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedTypes |
	packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedTypesSizes | packages.NeedForTest | packages.NeedModule | packages.NeedExportFile

// Nested says whether nested modules are read too.
var Nested bool

// Load reads DIR.
func Load(dir, src string, plan *Plan, overlay map[string][]byte, quick bool) (*World, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	w := &World{Dir: dir, SrcDir: filepath.Join(dir, src), Plan: plan, pkgBy: map[string]*Pkg{}, Files: map[string]*File{}, Objs: map[string]*Obj{},
		existing: map[string]map[string]bool{}, existingName: map[string]string{}, Imports: map[string]map[string]bool{}, shadowObjs: map[string]*shadowed{},
		locals: map[string]bool{}, Overlay: overlay, Quick: quick}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	for _, l := range strings.Split(string(mod), "\n") {
		if m, ok := strings.CutPrefix(l, "module "); ok {
			w.Module = strings.TrimSpace(m)
			break
		}
	}
	type config struct {
		env   []string
		flags []string
	}
	configs := []config{{}}
	if err := w.load(nil, nil, true); err != nil {
		return nil, err
	}
	if !quick {
		if tags := w.missing(); len(tags) > 0 {
			var words []string
			for t := range tags {
				words = append(words, t)
			}
			sort.Strings(words)
			configs = []config{{nil, []string{"-tags=" + strings.Join(words, ",")}}, {[]string{"GOOS=darwin", "CGO_ENABLED=0"}, nil}, {[]string{"GOOS=windows", "CGO_ENABLED=0"}, nil}}
			for _, c := range configs {
				if len(w.missing()) == 0 {
					break
				}
				if err := w.load(c.env, c.flags, false); err != nil {
					return nil, err
				}
			}
			for t := range w.missing() {
				w.Problems = append(w.Problems, "UNREAD: a file of the source package with the build tag "+t+" was not read")
			}
		}
	}
	w.link()
	return w, nil
}

// missing returns the tags of files of the source package that are not read yet.
func (w *World) missing() map[string]bool {
	tags := map[string]bool{}
	names, _ := filepath.Glob(filepath.Join(w.SrcDir, "*.go"))
	for _, n := range names {
		if w.Files[n] != nil {
			continue
		}
		b, err := os.ReadFile(n)
		if err != nil {
			continue
		}
		found := false
		for _, l := range strings.Split(string(b), "\n") {
			if strings.HasPrefix(l, "package ") {
				break
			}
			if constraint.IsGoBuild(l) {
				x, err := constraint.Parse(l)
				if err != nil {
					continue
				}
				found = true
				x.Eval(func(tag string) bool { tags[tag] = true; return false })
			}
		}
		if !found {
			tags["GOOS:"+filepath.Base(n)] = true
		}
	}
	return tags
}

func (w *World) rel(abs string) string {
	r, err := filepath.Rel(w.Dir, abs)
	if err != nil {
		return abs
	}
	return filepath.ToSlash(r)
}

func (w *World) load(env, flags []string, first bool) error {
	cfg := &packages.Config{Mode: loadMode, Dir: w.Dir, Tests: true, Env: append(os.Environ(), env...), BuildFlags: flags, Overlay: w.Overlay}
	srcPattern := "./" + w.rel(w.SrcDir)
	patterns := []string{"./..."}
	if !first || w.Quick {
		patterns = []string{srcPattern}
	} else if work, err := os.ReadFile(filepath.Join(w.Dir, "go.work")); err == nil && !Nested {
		_ = work
	} else if work, err := os.ReadFile(filepath.Join(w.Dir, "go.work")); err == nil {
		for _, l := range strings.Split(string(work), "\n") {
			if l = strings.TrimSpace(l); strings.HasPrefix(l, "./") {
				patterns = append(patterns, l+"/...")
			}
		}
	}
	pkgs, err := packages.Load(cfg, patterns...)
	if err != nil {
		return err
	}
	bad := 0
	srcPath := w.Module
	if r := w.rel(w.SrcDir); r != "." {
		srcPath += "/" + r
	}
	var own []*packages.Package
	for _, p := range pkgs {
		base := strings.TrimSuffix(p.PkgPath, "_test")
		if strings.HasSuffix(p.ID, ".test") {
			continue
		}
		for _, e := range p.Errors {
			if base == srcPath || first {
				fmt.Fprintln(os.Stderr, "load:", e)
				if base == srcPath {
					bad++
				}
			}
		}
		own = append(own, p)
	}
	if bad > 0 {
		return fmt.Errorf("the source package does not compile")
	}
	// variants with tests first
	sort.SliceStable(own, func(i, j int) bool { return own[i].ForTest != "" && own[j].ForTest == "" })
	if w.Source == nil {
		for _, p := range own {
			if p.PkgPath == srcPath {
				w.Source = &Pkg{Dir: w.rel(w.SrcDir), Path: srcPath, Name: p.Name, Source: true, Existing: true, Rank: 1 << 20}
				w.SourceX = &Pkg{Dir: w.Source.Dir, Path: srcPath, Name: p.Name + "_test", XTest: true, Source: true, Existing: true, Rank: 1 << 21}
				break
			}
		}
		if w.Source == nil {
			return fmt.Errorf("no package %s", srcPath)
		}
	}
	for _, p := range own {
		inModule := p.PkgPath == w.Module || strings.HasPrefix(p.PkgPath, w.Module+"/")
		isSource := p.PkgPath == srcPath || p.PkgPath == srcPath+"_test"
		if inModule && !isSource && p.Types != nil && p.Name != "main" && !strings.HasSuffix(p.Name, "_test") {
			names := w.existing[p.PkgPath]
			if names == nil {
				names = map[string]bool{}
				w.existing[p.PkgPath] = names
			}
			for _, n := range p.Types.Scope().Names() {
				names[n] = true
			}
			w.existingName[p.PkgPath] = p.Name
		}
		if inModule && p.ForTest == "" {
			m := w.Imports[p.PkgPath]
			if m == nil {
				m = map[string]bool{}
				w.Imports[p.PkgPath] = m
			}
			for path := range p.Imports {
				m[path] = true
			}
		}
		for _, syn := range p.Syntax {
			abs := p.Fset.Position(syn.Package).Filename
			if w.Files[abs] != nil || strings.Contains(abs, "/go-build/") {
				continue
			}
			src, ok := w.Overlay[abs]
			if !ok {
				if src, err = os.ReadFile(abs); err != nil {
					return err
				}
			}
			f := &File{Rel: w.rel(abs), Abs: abs, Src: src, AST: syn, Fset: p.Fset, Test: strings.HasSuffix(abs, "_test.go"), Of: isSource,
				WasX: strings.HasSuffix(p.Name, "_test"), info: p.TypesInfo, tpkg: p.Types}
			w.Files[abs] = f
			w.Order = append(w.Order, f)
			w.cut(f)
			if !isSource {
				f.Pkg = &Pkg{Dir: filepath.ToSlash(filepath.Dir(f.Rel)), Path: strings.TrimSuffix(p.PkgPath, "_test"), Name: p.Name, Client: true, Existing: true, Rank: 1 << 20}
				f.Out = f.Rel
				for _, u := range f.Units {
					u.Pkg, u.Out = f.Pkg, f.Out
				}
			}
			if isSource {
				w.defs(f, p)
			}
		}
	}
	// Uses need all definitions.
	for _, p := range own {
		for _, syn := range p.Syntax {
			f := w.Files[p.Fset.Position(syn.Package).Filename]
			if f == nil || f.AST != syn || f.info != p.TypesInfo || f.Fset == nil {
				continue
			}
			w.uses(f, p)
			f.info = p.TypesInfo
		}
		isSource := p.PkgPath == srcPath || p.PkgPath == srcPath+"_test"
		if isSource && p.TypesInfo != nil {
			w.satisfied(p)
		}
	}
	return nil
}

// cut finds the units of a file.
func (w *World) cut(f *File) {
	for _, d := range f.AST.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			start := d.Pos()
			if d.Doc != nil {
				start = d.Doc.Pos()
			}
			g := &Group{File: f, Start: f.off(start), End: f.lineEnd(f.off(d.End()))}
			name := d.Name.Name
			u := &Unit{File: f, Start: g.Start, End: g.End, Node: d, Group: g}
			if d.Recv != nil && len(d.Recv.List) == 1 {
				u.Recv = recvName(d.Recv.List[0].Type)
				name = u.Recv + "." + name
			}
			u.Names = []string{name}
			g.Units = []*Unit{u}
			f.Units = append(f.Units, u)
			f.Groups = append(f.Groups, g)
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				continue
			}
			start := d.Pos()
			if d.Doc != nil {
				start = d.Doc.Pos()
			}
			g := &Group{File: f, Start: f.off(start), End: f.lineEnd(f.off(d.End())), Gen: d}
			for _, s := range d.Specs {
				var doc *ast.CommentGroup
				u := &Unit{File: f, Node: s, Group: g}
				switch s := s.(type) {
				case *ast.TypeSpec:
					doc = s.Doc
					u.Names = []string{s.Name.Name}
				case *ast.ValueSpec:
					doc = s.Doc
					for _, n := range s.Names {
						u.Names = append(u.Names, n.Name)
					}
				}
				if !d.Lparen.IsValid() {
					u.Start, u.End = g.Start, g.End
				} else {
					st := s.Pos()
					if doc != nil {
						st = doc.Pos()
					}
					u.Start, u.End = f.off(st), f.lineEnd(f.off(s.End()))
					if cl := f.off(d.Rparen); u.End > cl {
						u.End = cl
					}
				}
				g.Units = append(g.Units, u)
				f.Units = append(f.Units, u)
			}
			f.Groups = append(f.Groups, g)
		}
	}
}

// lineEnd returns the end of the line of an offset (before the newline), if only a comment follows; else the offset.
func (f *File) lineEnd(off int) int {
	i := off
	for i < len(f.Src) && f.Src[i] != '\n' {
		i++
	}
	rest := strings.TrimSpace(string(f.Src[off:i]))
	if rest == "" || strings.HasPrefix(rest, "//") || strings.HasPrefix(rest, ";") {
		return i
	}
	return off
}

func recvName(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return "?"
		}
	}
}

func (f *File) unitAt(off int) *Unit {
	i := sort.Search(len(f.Units), func(i int) bool { return f.Units[i].End >= off })
	if i < len(f.Units) && f.Units[i].Start <= off {
		return f.Units[i]
	}
	// inside of a group, or of an import
	for _, g := range f.Groups {
		if g.Start <= off && off <= g.End && len(g.Units) > 0 {
			return g.Units[0]
		}
	}
	return nil
}

// defs notes the objects that a file of the source package defines.
func (w *World) defs(f *File, p *packages.Package) {
	ast.Inspect(f.AST, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		o := p.TypesInfo.Defs[id]
		if o == nil || id.Name == "_" {
			return true
		}
		w.note(f, p, id, o)
		return true
	})
	// owners of fields and interface methods
	for _, u := range f.Units {
		ts, ok := u.Node.(*ast.TypeSpec)
		if !ok {
			ast.Inspect(u.Node, func(n ast.Node) bool {
				if fl, ok := n.(*ast.Field); ok {
					for _, id := range fl.Names {
						if o := w.Objs[w.key(f.Fset, id.Pos())]; o != nil && o.Owner == "" && o.Member && !o.method {
							o.Owner = "(" + u.Name() + ")"
							o.Disp = o.Owner + "." + o.Name
						}
					}
				}
				return true
			})
			continue
		}
		ast.Inspect(ts.Type, func(n ast.Node) bool {
			fl, ok := n.(*ast.Field)
			if !ok {
				return true
			}
			ids := fl.Names
			if len(ids) == 0 {
				if id := embeddedIdent(fl.Type); id != nil {
					ids = []*ast.Ident{id}
				}
			}
			for _, id := range ids {
				if o := w.Objs[w.key(f.Fset, id.Pos())]; o != nil && o.Member && o.Owner == "" {
					o.Owner = ts.Name.Name
					o.Disp = o.Owner + "." + o.Name
				}
			}
			return true
		})
	}
}

func embeddedIdent(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.SelectorExpr:
			return x.Sel
		case *ast.Ident:
			return x
		default:
			return nil
		}
	}
}

func (w *World) note(f *File, p *packages.Package, id *ast.Ident, o types.Object) {
	member := false
	isField := false
	isMethod := false
	owner := ""
	switch x := o.(type) {
	case *types.Var:
		if x.IsField() {
			member, isField = true, true
		} else if o.Parent() != p.Types.Scope() {
			w.locals[id.Name] = true
			return
		}
	case *types.Func:
		if sig := x.Type().(*types.Signature); sig.Recv() != nil {
			member, isMethod = true, true
			t := sig.Recv().Type()
			if pt, ok := t.(*types.Pointer); ok {
				t = pt.Elem()
			}
			if n, ok := t.(*types.Named); ok && !types.IsInterface(n) {
				owner = n.Obj().Name()
			}
		} else if id.Name == "init" {
			return
		}
	case *types.TypeName, *types.Const:
		if o.Parent() != p.Types.Scope() {
			w.locals[id.Name] = true
			return
		}
	default:
		return
	}
	k := w.key(f.Fset, id.Pos())
	if w.Objs[k] != nil {
		return
	}
	ob := &Obj{Key: k, Name: id.Name, Disp: id.Name, Unit: f.unitAt(f.off(id.Pos())), Member: member, Field: isField, method: isMethod, Owner: owner, T: o}
	if owner != "" {
		ob.Disp = owner + "." + id.Name
	}
	w.Objs[k] = ob
	w.ObjOrder = append(w.ObjOrder, ob)
}

func originOf(o types.Object) types.Object {
	switch x := o.(type) {
	case *types.Var:
		return x.Origin()
	case *types.Func:
		return x.Origin()
	}
	return o
}

func (w *World) obj(fset *token.FileSet, o types.Object) *Obj {
	if o == nil || !o.Pos().IsValid() {
		return nil
	}
	return w.Objs[w.key(fset, originOf(o).Pos())]
}

func (w *World) uses(f *File, p *packages.Package) {
	info := p.TypesInfo
	specName := map[string]string{}
	for _, s := range f.AST.Imports {
		if s.Name != nil {
			specName[strings.Trim(s.Path.Value, "\"`")] = s.Name.Name
		}
	}
	written := map[*ast.Ident]bool{}
	markWrite := func(e ast.Expr) {
		switch x := e.(type) {
		case *ast.Ident:
			written[x] = true
		case *ast.SelectorExpr:
			written[x.Sel] = true
		}
	}
	quals := map[*ast.Ident]*ast.SelectorExpr{}
	recvs := map[*ast.Ident]types.Type{}
	embeds := map[*ast.Ident]bool{}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.SelectorExpr:
			if id, ok := x.X.(*ast.Ident); ok {
				if _, ok := info.Uses[id].(*types.PkgName); ok {
					quals[x.Sel] = x
				}
			}
			if s := info.Selections[x]; s != nil {
				recvs[x.Sel] = s.Recv()
			}
		case *ast.AssignStmt:
			if x.Tok != token.DEFINE {
				for _, l := range x.Lhs {
					markWrite(l)
				}
			}
		case *ast.IncDecStmt:
			markWrite(x.X)
		case *ast.UnaryExpr:
			if x.Op == token.AND {
				markWrite(x.X)
			}
		case *ast.StructType:
			for _, fl := range x.Fields.List {
				if len(fl.Names) == 0 {
					if id := embeddedIdent(fl.Type); id != nil {
						embeds[id] = true
					}
				}
			}
		case *ast.CompositeLit:
			if f.Of {
				w.literal(f, p, x)
			}
		case *ast.BasicLit:
			if f.Of && x.Kind == token.STRING && len(x.Value) > 3 {
				off := f.off(x.Pos())
				w.litStrings = append(w.litStrings, LitString{f, f.unitAt(off), off, x.Value})
			}
		case *ast.Ident:
			off := f.off(x.Pos())
			if d := info.Defs[x]; d != nil {
				if o := w.Objs[w.key(f.Fset, x.Pos())]; o != nil {
					r := &Ref{Obj: o, File: f, Unit: f.unitAt(off), Off: off, Def: true, Qual: -1, pos: x.Pos()}
					if embeds[x] {
						// renamed as its type is
						if to := w.obj(f.Fset, info.Uses[x]); to != nil {
							union(to, o)
						}
						r.Embed = true
					}
					o.Refs = append(o.Refs, r)
				}
				if to := w.Plan; to != nil && to.Shadow[x.Name] != "" && f.Of {
					w.noteLocal(f, p, x, d)
				}
			}
			u := info.Uses[x]
			if u == nil {
				return true
			}
			if pn, ok := u.(*types.PkgName); ok {
				end := off + len(x.Name) + 1
				w.Imps = append(w.Imps, &ImpRef{File: f, Unit: f.unitAt(off), Off: off, End: end, Name: pn.Name(), Path: pn.Imported().Path(), Spec: specName[pn.Imported().Path()]})
				return true
			}
			if w.Plan != nil && w.Plan.Shadow[x.Name] != "" && f.Of {
				w.noteLocal(f, p, x, u)
			}
			o := w.obj(f.Fset, u)
			if o == nil {
				return true
			}
			r := &Ref{Obj: o, File: f, Unit: f.unitAt(off), Off: off, Qual: -1, pos: x.Pos(), recv: recvs[x], Write: written[x]}
			if s := quals[x]; s != nil {
				r.Qual = f.off(s.X.Pos())
			}
			o.Refs = append(o.Refs, r)
		}
		return true
	})
	if f.Of {
		ast.Inspect(f.AST, func(n ast.Node) bool {
			add := func(doc *ast.CommentGroup, id *ast.Ident) {
				if doc != nil && id != nil {
					w.fieldDocs = append(w.fieldDocs, docOf{f, doc, w.key(f.Fset, id.Pos())})
				}
			}
			switch x := n.(type) {
			case *ast.FuncDecl:
				add(x.Doc, x.Name)
			case *ast.GenDecl:
				for _, s := range x.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						add(x.Doc, s.Name)
						add(s.Doc, s.Name)
					case *ast.ValueSpec:
						for _, n := range s.Names {
							add(x.Doc, n)
							add(s.Doc, n)
							add(s.Comment, n)
						}
					}
				}
			case *ast.Field:
				for _, n := range x.Names {
					add(x.Doc, n)
					add(x.Comment, n)
				}
			}
			return true
		})
	}
}

func (w *World) noteLocal(f *File, p *packages.Package, id *ast.Ident, o types.Object) {
	v, ok := o.(*types.Var)
	if !ok || v.IsField() || v.Parent() == p.Types.Scope() || v.Pkg() == nil {
		return
	}
	k := w.key(f.Fset, o.Pos())
	s := w.shadowObjs[k]
	if s == nil {
		s = &shadowed{name: id.Name, file: f, offs: map[int]bool{}}
		w.shadowObjs[k] = s
	}
	s.offs[f.off(id.Pos())] = true
}

// literal notes struct literals without keys.
func (w *World) literal(f *File, p *packages.Package, x *ast.CompositeLit) {
	if len(x.Elts) == 0 {
		return
	}
	if _, ok := x.Elts[0].(*ast.KeyValueExpr); ok {
		return
	}
	t := p.TypesInfo.TypeOf(x)
	if t == nil {
		return
	}
	if pt, ok := t.Underlying().(*types.Pointer); ok {
		t = pt.Elem()
	}
	st, ok := t.Underlying().(*types.Struct)
	if !ok {
		return
	}
	named, ok := types.Unalias(t).(*types.Named)
	if !ok {
		return
	}
	to := w.obj(f.Fset, named.Obj())
	if to == nil {
		return
	}
	for i, e := range x.Elts {
		fl := st.Field(i)
		w.Unkeyed = append(w.Unkeyed, Insert{File: f, Off: f.off(e.Pos()), Field: w.obj(f.Fset, fl), Name: fl.Name(), Unit: f.unitAt(f.off(e.Pos())), Type: to})
	}
}

func (w *World) satisfied(p *packages.Package) {
	fset := p.Fset
	pair := func(lhs, rhs types.Type) {
		iface, ok := lhs.Underlying().(*types.Interface)
		if !ok {
			return
		}
		for i := 0; i < iface.NumMethods(); i++ {
			m := iface.Method(i)
			o, _, _ := types.LookupFieldOrMethod(rhs, true, m.Pkg(), m.Name())
			a, b := w.obj(fset, m), w.obj(fset, o)
			if a != nil && b != nil && a != b {
				w.pairs = append(w.pairs, [2]*Obj{a, b})
			}
		}
	}
	func() {
		defer func() {
			if e := recover(); e != nil {
				fmt.Fprintln(os.Stderr, "satisfy:", e)
				w.Problems = append(w.Problems, fmt.Sprint("satisfy panicked: ", e))
			}
		}()
		var fd satisfy.Finder
		fd.Find(p.TypesInfo, p.Syntax)
		for c := range fd.Result {
			pair(c.LHS, c.RHS)
		}
	}()
	for _, inst := range p.TypesInfo.Instances {
		_ = inst
	}
	for id, inst := range p.TypesInfo.Instances {
		o := p.TypesInfo.Uses[id]
		if o == nil {
			continue
		}
		var tps *types.TypeParamList
		switch t := originOf(o).Type().(type) {
		case *types.Signature:
			tps = t.TypeParams()
		case *types.Named:
			tps = t.Origin().TypeParams()
		case *types.Alias:
			tps = t.Origin().TypeParams()
		}
		if tps == nil {
			continue
		}
		for i := 0; i < tps.Len() && i < inst.TypeArgs.Len(); i++ {
			pair(tps.At(i).Constraint(), inst.TypeArgs.At(i))
		}
	}
}

// link joins objects that are renamed together.
func (w *World) link() {
	// the same name behind different build tags
	byName := map[string]*Obj{}
	for _, o := range w.ObjOrder {
		if o.Unit == nil || strings.HasPrefix(o.Owner, "(") {
			continue
		}
		if o.Member && o.Owner == "" {
			continue
		}
		k := o.Disp
		if o.Unit.File.WasX {
			k = "x " + k
		}
		if a := byName[k]; a == nil {
			byName[k] = o
		} else if a.Unit.File != o.Unit.File || !o.Member {
			union(a, o)
		}
	}
	for _, pr := range w.pairs {
		union(pr[0], pr[1])
	}
}

var _ = parser.ParseFile
