package core

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode"
)

type edit struct {
	off, n int
	text   string
}

type outLine struct {
	text string
	file *File
	line int // 0: new
}

type imp struct{ name, path string }

type outFile struct {
	rel     string
	pkg     *Pkg
	main    *File
	body    []outLine
	imports map[imp]bool
	build   string // build constraint of where it comes from
	old     string // path of the main file
}

// Output is the tree as it will be.
type Output struct {
	Files   map[string][]byte // new content by path relative to DIR
	Removed []string
	Changed []string
	Lines   []FileMap
	Long    int
}

// FileMap says where lines went.
type FileMap struct {
	Old  string   `json:"old"`
	New  string   `json:"new"`
	Runs [][3]int `json:"runs"` // old line, new line, number of lines
}

// LinesJSON is what repatch needs.
type LinesJSON struct {
	Base  string            `json:"base"`
	Src   string            `json:"src"`
	Plan  string            `json:"plan"`
	Pins  map[string]string `json:"pins"`
	Names map[string]string `json:"names"`
	Files []FileMap         `json:"files"`
	Quals map[string]string `json:"quals"` // what others call an exported declaration: old → new
}

func (w *World) refEdit(r *Ref, from *Pkg) (edit, bool) {
	o := r.Obj
	n := o.NewName()
	if o.Member {
		if n == o.Name {
			return edit{}, false
		}
		return edit{r.Off, len(o.Name), n}, true
	}
	if r.Def {
		if n == o.Name {
			return edit{}, false
		}
		return edit{r.Off, len(o.Name), n}, true
	}
	rr := *r
	if r.Unit != nil && from != r.Unit.Pkg {
		u := *r.Unit
		u.Pkg = from
		rr.Unit = &u
	}
	q, _ := w.qualifier(&rr)
	text := n
	if w.throughAlias(&rr) {
		text = o.Name
	} else if o.Unit.File.Test && o.Unit.Pkg.Dir != from.Dir {
		text = n
	}
	if q != "" {
		text = q + "." + text
	}
	off, l := r.Off, len(o.Name)
	if r.Qual >= 0 {
		l += off - r.Qual
		off = r.Qual
	}
	if string(r.File.Src[off:off+l]) == text {
		return edit{}, false
	}
	return edit{off, l, text}, true
}

// commentEdits renames in comments.
func (w *World) commentEdits(edits map[*File]map[int]edit) {
	type target struct {
		o   *Obj
		bad bool
	}
	camel := map[string]*target{}
	dotted := map[string]*Obj{}
	for _, o := range w.ObjOrder {
		if o.Unit == nil {
			continue
		}
		changed := o.NewName() != o.Name
		if t := camel[o.Name]; t != nil {
			if t.o.NewName() != o.NewName() || t.o.Member != o.Member || !o.Member {
				if t.o.Root() != o.Root() {
					t.bad = true
				}
			}
		} else {
			camel[o.Name] = &target{o, w.locals[o.Name]}
		}
		if o.Member && changed {
			dotted[o.Disp] = o
		}
	}
	word := regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?`)
	put := func(f *File, e edit) {
		if edits[f] == nil {
			edits[f] = map[int]edit{}
		}
		if _, ok := edits[f][e.off]; !ok {
			edits[f][e.off] = e
		}
	}
	for _, d := range w.fieldDocs {
		o := w.Objs[d.Key]
		if o == nil || o.NewName() == o.Name {
			continue
		}
		for i, c := range d.Doc.List {
			if i > 0 {
				break
			}
			rest, ok := strings.CutPrefix(c.Text, "// "+o.Name)
			if !ok || rest != "" && (isWord(rest[0]) || rest[0] == '.' && len(rest) > 1 && isWord(rest[1])) {
				continue
			}
			put(d.File, edit{d.File.off(c.Pos()) + 3, len(o.Name), o.NewName()})
		}
	}
	quals := map[string]string{}
	for _, o := range w.ObjOrder {
		if !o.Member && o.Unit != nil && ast.IsExported(o.Name) && !o.Unit.File.Test && !w.aliased(o) && !samePkg(o.Unit.Pkg, w.Source) {
			quals[w.Source.Name+"."+o.Name] = o.Unit.Pkg.Name + "." + o.NewName()
		}
	}
	for _, f := range w.Order {
		if !f.Of {
			for _, cg := range f.AST.Comments {
				for _, c := range cg.List {
					for _, m := range word.FindAllStringIndex(c.Text, -1) {
						if to := quals[c.Text[m[0]:m[1]]]; to != "" {
							put(f, edit{f.off(c.Pos()) + m[0], m[1] - m[0], to})
						}
					}
				}
			}
			continue
		}
		for _, cg := range f.AST.Comments {
			for _, c := range cg.List {
				if strings.HasPrefix(c.Text, "//go:") || strings.HasPrefix(c.Text, "//nolint") {
					if p, ok := strings.CutPrefix(c.Text, "//go:embed "); ok {
						dir := f.Pkg.Dir
						if u := f.unitAt(f.off(c.Pos())); u != nil {
							dir = u.Pkg.Dir
						}
						var to []string
						for _, pat := range strings.Fields(p) {
							if n := w.embedPath(dir, pat); n != "" {
								pat = n
							}
							to = append(to, pat)
						}
						if n := "//go:embed " + strings.Join(to, " "); n != c.Text {
							put(f, edit{f.off(c.Pos()), len(c.Text), n})
						}
					}
					continue
				}
				base := f.off(c.Pos())
				u := f.unitAt(base)
				pkg := f.Pkg
				if u != nil {
					pkg = u.Pkg
				}
				for _, m := range word.FindAllStringIndex(c.Text, -1) {
					s := c.Text[m[0]:m[1]]
					if a, b, ok := strings.Cut(s, "."); ok {
						if o := dotted[s]; o != nil {
							left := a
							for _, t := range w.ObjOrder {
								if !t.Member && t.Name == a && t.Unit != nil && t.Unit.File.WasX == o.Unit.File.WasX {
									left = w.seenAs(t, pkg)
									break
								}
							}
							put(f, edit{base + m[0], len(s), left + "." + o.NewName()})
							continue
						}
						// x.foo: a member
						if t := camel[b]; t != nil && !t.bad && t.o.Member && isCamel(b) && t.o.NewName() != b {
							put(f, edit{base + m[0] + len(a) + 1, len(b), t.o.NewName()})
						}
						continue
					}
					if !isCamel(s) {
						continue
					}
					t := camel[s]
					if t == nil || t.bad {
						continue
					}
					to := t.o.NewName()
					if !t.o.Member {
						to = w.seenAs(t.o, pkg)
					}
					if to != s && (t.o.Member || t.o.Unit.Pkg.Rank <= pkg.Rank || to == t.o.NewName()) {
						put(f, edit{base + m[0], len(s), to})
					}
				}
			}
		}
	}
}

// seenAs is how comments of a package name a declaration.
func (w *World) seenAs(o *Obj, from *Pkg) string {
	if samePkg(from, o.Unit.Pkg) || o.Unit.File.Test || o.Unit.Pkg.XTest {
		return o.NewName()
	}
	if w.aliased(o) && from.Dir == w.Source.Dir {
		return o.Name
	}
	if o.Unit.Pkg == w.Source {
		return o.NewName() // upwards: no name to be had
	}
	return o.Unit.Pkg.Name + "." + o.NewName()
}

func isWord(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// isCamel says whether a word is an identifier and not English: a lower-case letter first, an upper-case one inside.
func isCamel(s string) bool {
	if s == "" || !unicode.IsLower(rune(s[0])) {
		return false
	}
	return strings.IndexFunc(s, unicode.IsUpper) > 0
}

func (w *World) allEdits() map[*File][]edit {
	m := map[*File]map[int]edit{}
	put := func(f *File, e edit) {
		if m[f] == nil {
			m[f] = map[int]edit{}
		}
		m[f][e.off] = e
	}
	for pass := range 2 { // definitions first: the use of an embedded type wins
		for _, o := range w.ObjOrder {
			for _, r := range o.Refs {
				if r.Def != (pass == 0) || r.Unit == nil && o.Unit == nil {
					continue
				}
				if r.Unit == nil || r.Unit.Orig != nil {
					continue
				}
				if e, ok := w.refEdit(r, r.Unit.Pkg); ok {
					put(r.File, e)
				}
			}
		}
	}
	for _, im := range w.Imps {
		if im.File.Of && im.Unit != nil && im.Unit.Orig == nil && im.Path == im.Unit.Pkg.Path && !im.Unit.Pkg.XTest && im.Path != w.Source.Path {
			put(im.File, edit{im.Off, im.End - im.Off, ""})
		}
	}
	for _, in := range w.Unkeyed {
		if in.Unit != nil && in.Type.Unit != nil && !samePkg(in.Unit.Pkg, in.Type.Unit.Pkg) && in.File.WasX == in.Type.Unit.File.WasX {
			n := in.Name
			if in.Field != nil {
				n = in.Field.NewName()
			}
			e, ok := m[in.File][in.Off]
			if ok {
				e.text = n + ": " + e.text
			} else {
				e = edit{in.Off, 0, n + ": "}
			}
			put(in.File, e)
		}
	}
	for _, s := range w.shadowObjs {
		to := w.Plan.Shadow[s.name]
		for off := range s.offs {
			put(s.file, edit{off, len(s.name), to})
		}
	}
	for _, f := range w.Order {
		if f.Of && f.AST.Name.Name != f.Pkg.Name {
			put(f, edit{f.off(f.AST.Name.Pos()), len(f.AST.Name.Name), f.Pkg.Name})
		}
	}
	w.commentEdits(m)
	res := map[*File][]edit{}
	for f, es := range m {
		l := make([]edit, 0, len(es))
		for _, e := range es {
			l = append(l, e)
		}
		sort.Slice(l, func(i, j int) bool { return l[i].off < l[j].off })
		// no overlaps
		k := l[:0]
		end := -1
		for _, e := range l {
			if e.off < end {
				continue
			}
			k = append(k, e)
			end = e.off + e.n
		}
		res[f] = k
	}
	return res
}

func (f *File) origPkg(w *World) *Pkg {
	if f.WasX {
		return w.SourceX
	}
	return w.Source
}

// render returns a range of a file with edits.
func render(f *File, start, end int, edits []edit) []outLine {
	var b bytes.Buffer
	line := f.line(start)
	res := []outLine{{file: f, line: line}}
	flush := func() {
		res[len(res)-1].text = b.String()
		b.Reset()
	}
	i := sort.Search(len(edits), func(i int) bool { return edits[i].off >= start })
	for off := start; off < end; {
		if i < len(edits) && edits[i].off == off {
			e := edits[i]
			i++
			if e.off+e.n <= end {
				b.WriteString(e.text)
				if e.n > 0 {
					off += e.n
				}
				if e.n == 0 && off < end {
					// an insertion: fall through to the byte, unless another edit stands here
				}
				continue
			}
		}
		c := f.Src[off]
		if c == '\n' {
			line++
			flush()
			res = append(res, outLine{file: f, line: line})
		} else {
			b.WriteByte(c)
		}
		off++
	}
	flush()
	return res
}

func textOf(ls []outLine) string {
	s := make([]string, len(ls))
	for i, l := range ls {
		s[i] = l.text
	}
	return strings.Join(s, "\n")
}

func newLines(s string) []outLine {
	var res []outLine
	for _, l := range strings.Split(s, "\n") {
		res = append(res, outLine{text: l})
	}
	return res
}

// specText renders a spec that stands in parentheses by itself.
func specText(u *Unit, edits []edit) []outLine {
	f := u.File
	at := f.off(u.Node.Pos())
	var doc []outLine
	if at > u.Start {
		doc = render(f, u.Start, at, edits)
		doc = doc[:len(doc)-1] // the indentation before the spec
	}
	spec := render(f, at, u.End, edits)
	spec[0].text = u.Group.Gen.Tok.String() + " " + spec[0].text
	return append(doc, spec...)
}

// Compose makes the new files. only: if not nil, the old files that matter.
func (w *World) Compose() (*Output, error) {
	edits := w.allEdits()
	outs := map[string]*outFile{}
	get := func(rel string, p *Pkg, from *File) *outFile {
		o := outs[rel]
		if o == nil {
			o = &outFile{rel: rel, pkg: p, imports: map[imp]bool{}}
			outs[rel] = o
		}
		if from != nil && o.build == "" {
			o.build = from.buildLine()
		}
		return o
	}
	impsOf := map[*Unit][]imp{}
	for _, im := range w.Imps {
		if im.Unit == nil || im.Path == w.Source.Path {
			continue
		}
		if im.Path == im.Unit.Pkg.Path && !im.Unit.Pkg.XTest {
			continue
		}
		impsOf[im.Unit] = append(impsOf[im.Unit], imp{im.Spec, im.Path})
	}
	for _, o := range w.ObjOrder {
		for _, r := range o.Refs {
			if r.Def || r.Unit == nil {
				continue
			}
			if q, p := w.qualifier(r); q != "" {
				impsOf[r.Unit] = append(impsOf[r.Unit], w.impFor(q, p, r.File))
			}
		}
	}
	out := &Output{Files: map[string][]byte{}}
	type moved struct {
		units []*Unit
		whole bool
		g     *Group
	}
	// main parts
	for _, f := range w.Order {
		if !f.Of {
			if len(edits[f]) == 0 {
				continue
			}
			o := get(f.Rel, f.Pkg, nil)
			o.main, o.old = f, f.Rel
			for _, u := range f.Units {
				for _, im := range impsOf[u] {
					o.imports[im] = true
				}
			}
			continue
		}
		stay := 0
		for _, u := range f.Units {
			if u.Out == f.Out {
				stay++
			}
		}
		if stay == 0 && len(f.Units) > 0 {
			continue
		}
		o := get(f.Out, f.Pkg, nil)
		if o.main != nil {
			return nil, fmt.Errorf("%s would come from %s and %s", f.Out, o.main.Rel, f.Rel)
		}
		o.main, o.old = f, f.Rel
		for _, u := range f.Units {
			if u.Out == f.Out {
				for _, im := range impsOf[u] {
					o.imports[im] = true
				}
			}
		}
	}
	type cutRange struct{ a, b int }
	cuts := map[*File][]cutRange{}
	appended := map[string][][]outLine{}
	var order []*File
	order = append(order, w.Order...)
	for _, f := range order {
		if !f.Of {
			continue
		}
		for _, g := range f.Groups {
			dest := map[string][]*Unit{}
			var ds []string
			for _, u := range g.Units {
				if dest[u.Out] == nil {
					ds = append(ds, u.Out)
				}
				dest[u.Out] = append(dest[u.Out], u)
			}
			if len(g.Units) == 0 || len(ds) == 1 && ds[0] == f.Out {
				continue
			}
			if len(ds) > 1 && g.Gen != nil && g.Gen.Tok == token.CONST {
				for _, s := range g.Gen.Specs {
					if len(s.(*ast.ValueSpec).Values) == 0 {
						return nil, fmt.Errorf("%s:%d: a group of constants with iota cannot be split", f.Rel, f.line(g.Start))
					}
					bad := false
					for _, v := range s.(*ast.ValueSpec).Values {
						ast.Inspect(v, func(n ast.Node) bool {
							if id, ok := n.(*ast.Ident); ok && id.Name == "iota" {
								bad = true
							}
							return true
						})
					}
					if bad {
						return nil, fmt.Errorf("%s:%d: a group of constants with iota cannot be split", f.Rel, f.line(g.Start))
					}
				}
			}
			if len(ds) == 1 || len(dest[f.Out]) == 0 {
				cuts[f] = append(cuts[f], cutRange{g.Start, g.End})
			}
			for _, d := range ds {
				if d == f.Out {
					continue
				}
				us := dest[d]
				o := get(d, us[0].Pkg, f)
				for _, u := range us {
					for _, im := range impsOf[u] {
						o.imports[im] = true
					}
				}
				var text []outLine
				if len(ds) == 1 {
					text = render(f, g.Start, g.End, edits[f])
				} else {
					if len(us) > 1 {
						text = newLines(g.Gen.Tok.String() + " (")
						for _, u := range us {
							text = append(text, render(f, u.Start, u.End, edits[f])...)
						}
						text = append(text, newLines(")")...)
					} else {
						text = specText(us[0], edits[f])
					}
					if len(dest[f.Out]) > 0 {
						for _, u := range us {
							cuts[f] = append(cuts[f], cutRange{u.Start, u.End})
						}
					}
				}
				appended[d] = append(appended[d], text)
			}
		}
		// aliases
		if text, ims := w.aliases(f, edits); len(text) > 0 {
			rel := path.Join(w.Source.Dir, path.Base(f.Rel))
			o := get(rel, w.Source, f)
			for _, im := range ims {
				o.imports[im] = true
			}
			appended[rel] = append(appended[rel], newLines(text))
		}
	}
	for _, c := range w.Clones {
		o := get(c.Out, c.Pkg, c.File)
		for _, im := range impsOf[c] {
			o.imports[im] = true
		}
		m := map[int]edit{}
		for pass := range 2 {
			for _, r := range w.refsOf[c] {
				if r.Def == (pass == 0) {
					if e, ok := w.refEdit(r, c.Pkg); ok {
						m[e.off] = e
					}
				}
			}
		}
		var es []edit
		for _, e := range m {
			es = append(es, e)
		}
		sort.Slice(es, func(i, j int) bool { return es[i].off < es[j].off })
		var text []outLine
		if c.Group.Gen != nil && c.Group.Gen.Lparen.IsValid() {
			text = specText(c, es)
		} else {
			text = render(c.File, c.Group.Start, c.Group.End, es)
		}
		for i := range text {
			text[i].file, text[i].line = nil, 0
		}
		appended[c.Out] = append(appended[c.Out], text)
	}
	var rels []string
	for r := range outs {
		rels = append(rels, r)
	}
	sort.Strings(rels)
	docs := map[string]string{}
	for d, t := range w.Plan.Doc {
		p := w.target(d)
		if p == nil || w.Quick {
			continue
		}
		best := ""
		for _, r := range rels {
			if outs[r].pkg == p && !strings.HasSuffix(r, "_test.go") && (best == "" || path.Base(r) == p.Name+".go") {
				best = r
			}
		}
		if best != "" {
			docs[best] = t
		}
	}
	for _, rel := range rels {
		o := outs[rel]
		var ls []outLine
		bodyText := ""
		if o.main != nil {
			f := o.main
			cs := cuts[f]
			sort.Slice(cs, func(i, j int) bool { return cs[i].a < cs[j].a })
			pkgEnd := f.lineEnd(f.off(f.AST.Name.End()))
			type skip struct{ a, b int }
			pos := pkgEnd
			seg := func(a, b int) []outLine {
				var res []outLine
				for _, c := range cs {
					if c.b <= a || c.a >= b {
						continue
					}
					if c.a > a {
						res = joinLines(res, render(f, a, c.a, edits[f]))
					}
					a = c.b
				}
				if a < b {
					res = joinLines(res, render(f, a, b, edits[f]))
				}
				return res
			}
			var rest []outLine
			imported := false
			var importAt int
			for _, d := range f.AST.Decls {
				g, ok := d.(*ast.GenDecl)
				if !ok || g.Tok != token.IMPORT {
					continue
				}
				start := g.Pos()
				if g.Doc != nil {
					start = g.Doc.Pos()
				}
				rest = joinLines(rest, seg(pos, f.off(start)))
				if !imported {
					imported = true
					importAt = len(rest) - 1
				}
				pos = f.lineEnd(f.off(g.End()))
			}
			rest = joinLines(rest, seg(pos, len(f.Src)))
			head := render(f, 0, pkgEnd, edits[f])
			if t := docs[rel]; t != "" && f.AST.Doc == nil {
				last := head[len(head)-1]
				head = append(append(head[:len(head)-1:len(head)-1], newLines(t)...), last)
			}
			bodyText = textOf(rest)
			block, same := w.importBlock(o, f, bodyText)
			var blockLines []outLine
			if same && imported {
				// as it was
				for _, d := range f.AST.Decls {
					if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
						start := g.Pos()
						if g.Doc != nil {
							start = g.Doc.Pos()
						}
						if blockLines != nil {
							blockLines = append(blockLines, outLine{})
						}
						blockLines = append(blockLines, render(f, f.off(start), f.lineEnd(f.off(g.End())), nil)...)
					}
				}
			} else if block != "" {
				blockLines = newLines(block)
				w.mapImports(f, blockLines)
			}
			ls = append(ls, head...)
			if imported {
				ls = joinLines(ls, rest[:importAt+1])
				if blockLines != nil {
					ls = append(ls, blockLines...)
				}
				ls = append(ls, rest[importAt+1:]...)
			} else {
				if blockLines != nil {
					ls = append(ls, outLine{})
					ls = append(ls, blockLines...)
				}
				ls = joinLines(ls, rest)
			}
		} else {
			if o.build != "" {
				ls = append(ls, outLine{text: o.build}, outLine{})
			}
			if t := docs[rel]; t != "" {
				ls = append(ls, newLines(t)...)
			}
			ls = append(ls, outLine{text: "package " + o.pkg.Name}, outLine{})
			var all strings.Builder
			for _, a := range appended[rel] {
				all.WriteString(textOf(a))
			}
			block, _ := w.importBlock(o, nil, all.String())
			if block != "" {
				ls = append(ls, newLines(block)...)
				ls = append(ls, outLine{})
			}
		}
		for _, a := range appended[rel] {
			ls = append(ls, outLine{})
			ls = append(ls, a...)
		}
		src := []byte(textOf(ls) + "\n")
		formatted, err := format.Source(src)
		if err != nil {
			os.WriteFile("/tmp/mover.bad.go", src, 0o644)
			return nil, fmt.Errorf("%s: %v (see /tmp/mover.bad.go)", rel, err)
		}
		formatted = append(bytes.TrimRight(formatted, "\n"), '\n')
		out.Files[rel] = formatted
		out.mapLines(rel, ls, formatted)
	}
	for _, f := range w.Order {
		if f.Of {
			if _, ok := out.Files[f.Rel]; !ok {
				out.Removed = append(out.Removed, f.Rel)
			}
		}
	}
	return out, nil
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

// joinLines puts b behind the last line of a.
func joinLines(a, b []outLine) []outLine {
	if len(a) == 0 {
		return append(a, b...)
	}
	if len(b) == 0 {
		return a
	}
	last := a[len(a)-1]
	if strings.TrimSpace(last.text) == "" {
		t := last.text
		last = b[0]
		last.text = t + last.text
	} else {
		last.text += b[0].text
	}
	return append(append(a[:len(a)-1:len(a)-1], last), b[1:]...)
}

func (f *File) buildLine() string {
	for _, l := range strings.Split(string(f.Src[:f.off(f.AST.Package)]), "\n") {
		if strings.HasPrefix(l, "//go:build ") {
			return l
		}
	}
	return ""
}

func (w *World) impFor(q, p string, f *File) imp {
	if path.Base(p) == q {
		return imp{"", p}
	}
	for _, s := range f.AST.Imports {
		if strings.Trim(s.Path.Value, "\"`") == p && s.Name == nil {
			return imp{"", p}
		}
	}
	if q == w.Source.Name && p == w.Source.Path {
		return imp{"", p}
	}
	return imp{q, p}
}

// importBlock returns the imports of a file, and whether they are those it had.
func (w *World) importBlock(o *outFile, f *File, body string) (string, bool) {
	want := map[imp]bool{}
	for i := range o.imports {
		want[i] = true
	}
	had := map[imp]bool{}
	comment := map[string]string{}
	if f != nil {
		for _, s := range f.AST.Imports {
			p := strings.Trim(s.Path.Value, "\"`")
			i := imp{"", p}
			if s.Name != nil {
				i.name = s.Name.Name
			}
			had[i] = true
			if i.name == "_" && p != "embed" || i.name == "." {
				want[i] = true
			}
			if s.Comment != nil {
				comment[p] = " " + s.Comment.List[0].Text
			}
			if s.Doc != nil {
				var d []string
				for _, c := range s.Doc.List {
					d = append(d, c.Text)
				}
				comment["doc "+p] = strings.Join(d, "\n\t")
			}
		}
	}
	if strings.Contains(body, "//go:embed ") && !want[imp{"", "embed"}] {
		want[imp{"_", "embed"}] = true
	}
	same := len(had) == len(want)
	for i := range want {
		same = same && had[i]
	}
	var groups [3][]imp
	for i := range want {
		k := 0
		first, _, _ := strings.Cut(i.path, "/")
		switch {
		case i.path == w.Module || strings.HasPrefix(i.path, w.Module+"/"):
			k = 2
		case strings.Contains(first, "."):
			k = 1
		}
		groups[k] = append(groups[k], i)
	}
	if len(want) == 0 {
		return "", same
	}
	line := func(i imp) string {
		s := strconv.Quote(i.path)
		if i.name != "" {
			s = i.name + " " + s
		}
		return s + comment[i.path]
	}
	if len(want) == 1 {
		for i := range want {
			if comment["doc "+i.path] == "" {
				return "import " + line(i), same
			}
		}
	}
	var b strings.Builder
	b.WriteString("import (\n")
	first := true
	for _, g := range groups {
		if len(g) == 0 {
			continue
		}
		if !first {
			b.WriteString("\n")
		}
		first = false
		sort.Slice(g, func(i, j int) bool { return g[i].path < g[j].path })
		for _, i := range g {
			if d := comment["doc "+i.path]; d != "" {
				b.WriteString("\t" + d + "\n")
			}
			b.WriteString("\t" + line(i) + "\n")
		}
	}
	b.WriteString(")")
	return b.String(), same
}

func (w *World) mapImports(f *File, ls []outLine) {
	at := map[string]int{}
	for _, s := range f.AST.Imports {
		n := f.line(f.off(s.Pos()))
		l := strings.Split(string(f.Src), "\n")[n-1]
		at[strings.TrimSpace(l)] = n
	}
	for i := range ls {
		if n := at[strings.TrimSpace(ls[i].text)]; n > 0 {
			ls[i].file, ls[i].line = f, n
		}
	}
}

// aliases returns the declarations that keep names of a file visible in the source package.
func (w *World) aliases(f *File, all map[*File][]edit) (string, []imp) {
	var b strings.Builder
	var ims []imp
	docText := func(g *ast.CommentGroup) string {
		if g == nil {
			return ""
		}
		var s []string
		for _, c := range g.List {
			if strings.HasPrefix(c.Text, "//go:") {
				continue
			}
			s = append(s, c.Text)
		}
		return strings.Join(s, "\n") + "\n"
	}
	// text of a node as the source package would write it
	text := func(n ast.Node) string {
		a, z := f.off(n.Pos()), f.off(n.End())
		var es []edit
		for _, o := range w.ObjOrder {
			for _, r := range o.Refs {
				if r.File != f || r.Off < a || r.Off >= z {
					continue
				}
				if e, ok := w.refEdit(r, w.Source); ok {
					es = append(es, e)
				}
				rr := *r
				u := *r.Unit
				u.Pkg = w.Source
				rr.Unit = &u
				if q, p := w.qualifier(&rr); q != "" {
					ims = append(ims, w.impFor(q, p, f))
				}
			}
		}
		for _, im := range w.Imps {
			if im.File == f && im.Off >= a && im.Off < z {
				ims = append(ims, imp{im.Spec, im.Path})
			}
		}
		sort.Slice(es, func(i, j int) bool { return es[i].off < es[j].off })
		return textOf(render(f, a, z, es))
	}
	params := func(tp *ast.FieldList) (string, string) {
		if tp == nil || len(tp.List) == 0 {
			return "", ""
		}
		var names []string
		for _, fl := range tp.List {
			for _, n := range fl.Names {
				names = append(names, n.Name)
			}
		}
		s := text(tp)
		return s, "[" + strings.Join(names, ", ") + "]"
	}
	objOf := func(id *ast.Ident) *Obj {
		o := w.Objs[w.key(f.Fset, id.Pos())]
		if o != nil && w.aliased(o) {
			return o
		}
		return nil
	}
	for _, d := range f.AST.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				continue
			}
			o := objOf(d.Name)
			if o == nil {
				continue
			}
			q := o.Unit.Pkg.Name
			ims = append(ims, w.impFor(q, o.Unit.Pkg.Path, f))
			tp, targs := params(d.Type.TypeParams)
			if !named(d.Type.Params) {
				if tp == "" {
					fmt.Fprintf(&b, "\n%svar %s = %s.%s\n", docText(d.Doc), o.Name, q, o.NewName())
					continue
				}
			}
			var args []string
			for _, fl := range d.Type.Params.List {
				for _, n := range fl.Names {
					a := n.Name
					if _, ok := fl.Type.(*ast.Ellipsis); ok {
						a += "..."
					}
					args = append(args, a)
				}
			}
			res, ret := "", ""
			if d.Type.Results != nil {
				res, ret = " "+text(d.Type.Results), "return "
			}
			fmt.Fprintf(&b, "\n%sfunc %s%s%s%s {\n\t%s%s.%s%s(%s)\n}\n", docText(d.Doc), o.Name, tp, text(d.Type.Params), res, ret, q, o.NewName(), targs, strings.Join(args, ", "))
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				continue
			}
			type one struct{ doc, line string }
			var l []one
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if o := objOf(s.Name); o != nil {
						tp, targs := params(s.TypeParams)
						q := o.Unit.Pkg.Name
						ims = append(ims, w.impFor(q, o.Unit.Pkg.Path, f))
						l = append(l, one{docText(s.Doc), fmt.Sprintf("%s%s = %s.%s%s", o.Name, tp, q, o.NewName(), targs)})
					}
				case *ast.ValueSpec:
					doc := docText(s.Doc)
					for _, n := range s.Names {
						if o := objOf(n); o != nil {
							q := o.Unit.Pkg.Name
							ims = append(ims, w.impFor(q, o.Unit.Pkg.Path, f))
							c := ""
							if s.Comment != nil {
								c = " " + s.Comment.List[0].Text
							}
							l = append(l, one{doc, fmt.Sprintf("%s = %s.%s%s", o.Name, q, o.NewName(), c)})
							doc = ""
						}
					}
				}
			}
			switch {
			case len(l) == 0:
			case len(l) == 1:
				doc := l[0].doc
				if doc == "" {
					doc = docText(d.Doc)
				}
				fmt.Fprintf(&b, "\n%s%s %s\n", doc, d.Tok, l[0].line)
			default:
				fmt.Fprintf(&b, "\n%s%s (\n", docText(d.Doc), d.Tok)
				for i, x := range l {
					if i > 0 && x.doc != "" && strings.Count(x.doc, "\n") > 0 {
						// docs as they stand
					}
					b.WriteString(x.doc + x.line + "\n")
				}
				b.WriteString(")\n")
			}
		}
	}
	return strings.Trim(b.String(), "\n"), ims
}

func named(p *ast.FieldList) bool {
	for _, f := range p.List {
		if len(f.Names) == 0 {
			return false
		}
		for _, n := range f.Names {
			if n.Name == "_" {
				return false
			}
		}
	}
	return true
}

func squeeze(s string) string {
	return strings.Join(strings.Fields(s), "")
}

// mapLines notes where lines went; gofmt may have moved them.
func (out *Output) mapLines(rel string, ls []outLine, formatted []byte) {
	fl := strings.Split(strings.TrimSuffix(string(formatted), "\n"), "\n")
	j := 0
	var cur *FileMap
	maps := map[string]*FileMap{}
	var order []string
	for _, l := range ls {
		t := squeeze(l.text)
		k := -1
		if t == "" {
			if j < len(fl) && squeeze(fl[j]) == "" {
				k = j
			}
		} else {
			for x := j; x < len(fl) && x < j+4; x++ {
				if squeeze(fl[x]) == t {
					k = x
					break
				}
			}
		}
		if k < 0 {
			continue
		}
		j = k + 1
		if l.file == nil || l.line == 0 {
			continue
		}
		cur = maps[l.file.Rel]
		if cur == nil {
			cur = &FileMap{Old: l.file.Rel, New: rel}
			maps[l.file.Rel] = cur
			order = append(order, l.file.Rel)
		}
		if n := len(cur.Runs); n > 0 && cur.Runs[n-1][0]+cur.Runs[n-1][2] == l.line && cur.Runs[n-1][1]+cur.Runs[n-1][2] == k+1 {
			cur.Runs[n-1][2]++
		} else {
			cur.Runs = append(cur.Runs, [3]int{l.line, k + 1, 1})
		}
	}
	for _, o := range order {
		out.Lines = append(out.Lines, *maps[o])
	}
}

// PinsOf returns the new names.
func (w *World) PinsOf() map[string]string {
	m := map[string]string{}
	for _, o := range w.ObjOrder {
		if g := o.Root(); g.New != "" && o.Unit != nil {
			m[pinKey(o)] = g.New
		}
	}
	return m
}

// WriteLines writes PLAN.lines.json.
func (w *World) WriteLines(name, base, planText string, out *Output) error {
	j := LinesJSON{Base: base, Src: w.Source.Dir, Plan: planText, Pins: w.PinsOf(), Names: map[string]string{}, Files: out.Lines}
	for _, p := range w.Pkgs {
		if p != w.Source {
			j.Names[p.Dir] = p.Name
		}
	}
	j.Quals = map[string]string{}
	for _, o := range w.ObjOrder {
		if !o.Member && o.Unit != nil && ast.IsExported(o.Name) && !o.Unit.File.Test && !w.aliased(o) && !samePkg(o.Unit.Pkg, w.Source) {
			j.Quals[w.Source.Name+"."+o.Name] = o.Unit.Pkg.Name + "." + o.NewName()
		}
	}
	b, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return os.WriteFile(name, b, 0o644)
}

// Commit puts the output in place.
func (w *World) Commit(out *Output) error {
	for _, r := range out.Removed {
		if err := os.Remove(filepath.Join(w.Dir, r)); err != nil {
			return err
		}
	}
	for r, b := range out.Files {
		p := filepath.Join(w.Dir, r)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return err
		}
		if old, err := os.ReadFile(p); err == nil && bytes.Equal(old, b) {
			continue
		}
		out.Changed = append(out.Changed, r)
		for _, l := range strings.Split(string(b), "\n") {
			if width(l) > 120 {
				out.Long++
			}
		}
		if err := os.WriteFile(p, b, 0o644); err != nil {
			return err
		}
	}
	return nil
}
