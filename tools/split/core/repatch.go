package core

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// Repatcher rewrites patches.
type Repatcher struct {
	Dir     string // the tree as it is now
	Base    string // the tree as it was, in a directory of its own
	Lines   LinesJSON
	plan    string
	imports map[string]*types.Package
	goFiles []string
	srcPath string
	mod     string
	Out     string
	tree    map[string][]string // current .go files, lines by path relative to Dir
	old     map[string][]string // rendered old files
	maps    map[string][]FileMap
	tests   map[string][]string // test function → directories
}

type importerFunc func(string) (*types.Package, error)

func (f importerFunc) Import(p string) (*types.Package, error) { return f(p) }

// NewRepatcher prepares.
func NewRepatcher(dir, linesFile, base string) (*Repatcher, error) {
	r := &Repatcher{Dir: dir, tree: map[string][]string{}, old: map[string][]string{}, maps: map[string][]FileMap{}, tests: map[string][]string{}, imports: map[string]*types.Package{}}
	b, err := os.ReadFile(linesFile)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &r.Lines); err != nil {
		return nil, err
	}
	if base == "" {
		base = r.Lines.Base
	}
	for _, m := range r.Lines.Files {
		r.maps[m.Old] = append(r.maps[m.Old], m)
	}
	tmp, err := os.MkdirTemp("", "repatch")
	if err != nil {
		return nil, err
	}
	r.Base = tmp
	c := exec.Command("sh", "-c", `git -C "$1" archive "$2" | tar x -C "$3"`, "sh", dir, base, tmp)
	if o, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("git archive %s: %v %s", base, err, o)
	}
	cfg := &packages.Config{Dir: tmp, Mode: packages.NeedName | packages.NeedImports | packages.NeedTypes | packages.NeedCompiledGoFiles | packages.NeedModule | packages.NeedDeps | packages.NeedExportFile}
	cfg.Mode &^= packages.NeedDeps
	pkgs, err := packages.Load(cfg, "./"+r.Lines.Src)
	if err != nil {
		return nil, err
	}
	p := pkgs[0]
	for _, e := range p.Errors {
		return nil, fmt.Errorf("the old tree: %v", e)
	}
	r.srcPath = p.PkgPath
	if p.Module != nil {
		r.mod = p.Module.Path
	}
	for _, f := range p.CompiledGoFiles {
		r.goFiles = append(r.goFiles, f)
	}
	// imports: load them with their types
	var paths []string
	for ip := range p.Imports {
		if ip != "unsafe" {
			paths = append(paths, ip)
		}
	}
	ips, err := packages.Load(&packages.Config{Dir: tmp, Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports | packages.NeedExportFile}, paths...)
	if err != nil {
		return nil, err
	}
	for _, ip := range ips {
		r.imports[ip.PkgPath] = ip.Types
	}
	r.imports["unsafe"] = types.Unsafe
	err = filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(p, ".go") && !d.IsDir() {
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(dir, p)
			ls := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
			r.tree[filepath.ToSlash(rel)] = ls
			if strings.HasSuffix(p, "_test.go") {
				for _, l := range ls {
					if m := testFunc.FindStringSubmatch(l); m != nil {
						r.tests[m[1]] = append(r.tests[m[1]], filepath.ToSlash(filepath.Dir(rel)))
					}
				}
			}
		}
		return nil
	})
	return r, err
}

var testFunc = regexp.MustCompile(`^func (Test\w*|Fuzz\w*|Example\w*|Benchmark\w*)\(`)

// Close removes what NewRepatcher made.
func (r *Repatcher) Close() { os.RemoveAll(r.Base) }

// render returns a file of the source package as it would read after the move, not split; other are changed files (by path relative to the base).
func (r *Repatcher) render(rel string, other map[string][]byte) ([]string, []imp, error) {
	plan, err := ParsePlan(r.Lines.Plan)
	if err != nil {
		return nil, nil, err
	}
	for d, n := range r.Lines.Names {
		plan.Names[d] = n
	}
	w := &World{Dir: r.Base, SrcDir: filepath.Join(r.Base, r.Lines.Src), Module: r.mod, Plan: plan, pkgBy: map[string]*Pkg{}, Files: map[string]*File{}, Objs: map[string]*Obj{},
		existing: map[string]map[string]bool{}, existingName: map[string]string{}, Imports: map[string]map[string]bool{}, shadowObjs: map[string]*shadowed{}, locals: map[string]bool{}, Quick: true}
	fset := token.NewFileSet()
	var asts []*ast.File
	srcs := map[*ast.File][]byte{}
	files := r.goFiles
	for _, abs := range files {
		rl, _ := filepath.Rel(r.Base, abs)
		src, ok := other[filepath.ToSlash(rl)]
		if !ok {
			if src, err = os.ReadFile(abs); err != nil {
				return nil, nil, err
			}
		}
		a, err := parser.ParseFile(fset, abs, src, parser.ParseComments)
		if err != nil {
			return nil, nil, err
		}
		asts = append(asts, a)
		srcs[a] = src
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}, Implicits: map[ast.Node]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}, Scopes: map[ast.Node]*types.Scope{}, Instances: map[*ast.Ident]types.Instance{}}
	var errs []string
	conf := types.Config{Importer: importerFunc(func(p string) (*types.Package, error) {
		if t := r.imports[p]; t != nil {
			return t, nil
		}
		return nil, fmt.Errorf("no package %s", p)
	}), Error: func(err error) {
		if !strings.Contains(err.Error(), "declared and not used") && !strings.Contains(err.Error(), "imported and not used") {
			errs = append(errs, err.Error())
		}
	}}
	tp, _ := conf.Check(r.srcPath, fset, asts, info)
	if len(errs) > 0 && other != nil {
		return nil, nil, fmt.Errorf("does not compile on the old tree: %s", errs[0])
	} else if len(errs) > 0 {
		return nil, nil, fmt.Errorf("the old tree does not compile: %s", errs[0])
	}
	p := &packages.Package{PkgPath: r.srcPath, Name: tp.Name(), Types: tp, TypesInfo: info, Fset: fset, Syntax: asts}
	w.Source = &Pkg{Dir: r.Lines.Src, Path: r.srcPath, Name: p.Name, Source: true, Existing: true, Rank: 1 << 20}
	w.SourceX = &Pkg{Dir: r.Lines.Src, Path: r.srcPath, Name: p.Name + "_test", XTest: true, Source: true, Existing: true, Rank: 1 << 21}
	var f *File
	for _, a := range asts {
		abs := fset.Position(a.Package).Filename
		x := &File{Rel: w.rel(abs), Abs: abs, Src: srcs[a], AST: a, Fset: fset, Of: true, info: info, tpkg: tp}
		w.Files[abs] = x
		w.Order = append(w.Order, x)
		w.cut(x)
		w.defs(x, p)
		if x.Rel == rel {
			f = x
		}
	}
	if f == nil {
		return nil, nil, fmt.Errorf("%s is no file of the package in this build", rel)
	}
	w.uses(f, p)
	w.link()
	w.Assign() // what it cannot find are tests
	for _, o := range w.ObjOrder {
		if n := r.Lines.Pins[pinKey(o)]; n != "" {
			o.Root().New = n
		}
	}
	text := textOf(render(f, 0, len(f.Src), w.allEdits()[f]))
	b, err := format.Source([]byte(text))
	if err != nil {
		return nil, nil, err
	}
	var ims []imp
	for _, o := range w.ObjOrder {
		for _, ref := range o.Refs {
			if q, p := w.qualifier(ref); q != "" {
				ims = append(ims, w.impFor(q, p, f))
			}
		}
	}
	for _, im := range w.Imps {
		if im.Path != w.Source.Path {
			ims = append(ims, imp{im.Spec, im.Path})
		}
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n"), ims, nil
}

// hunk replaces lines a[at:at+len(minus)] by plus.
type hunk struct {
	at          int
	minus, plus []string
}

// diffLines compares by longest common subsequence, after cutting common ends.
func diffLines(a, b []string) []hunk {
	pre := 0
	for pre < len(a) && pre < len(b) && a[pre] == b[pre] {
		pre++
	}
	post := 0
	for post < len(a)-pre && post < len(b)-pre && a[len(a)-1-post] == b[len(b)-1-post] {
		post++
	}
	x, y := a[pre:len(a)-post], b[pre:len(b)-post]
	n, m := len(x), len(y)
	if n*m > 50_000_000 {
		return []hunk{{pre, x, y}}
	}
	l := make([][]int32, n+1)
	for i := range l {
		l[i] = make([]int32, m+1)
	}
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if x[i] == y[j] {
				l[i][j] = l[i+1][j+1] + 1
			} else {
				l[i][j] = max(l[i+1][j], l[i][j+1])
			}
		}
	}
	var hs []hunk
	i, j := 0, 0
	for i < n || j < m {
		if i < n && j < m && x[i] == y[j] {
			i++
			j++
			continue
		}
		h := hunk{at: pre + i}
		for (i < n || j < m) && !(i < n && j < m && x[i] == y[j]) {
			if i < n && (j == m || l[i+1][j] >= l[i][j+1]) {
				h.minus = append(h.minus, x[i])
				i++
			} else {
				h.plus = append(h.plus, y[j])
				j++
			}
		}
		hs = append(hs, h)
	}
	return hs
}

// unified writes a diff of one file.
func unified(rel string, a, b []string) string {
	hs := diffLines(a, b)
	if len(hs) == 0 {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "diff --git a/%s b/%s\n--- a/%s\n+++ b/%s\n", rel, rel, rel, rel)
	const ctx = 3
	delta := 0
	for i := 0; i < len(hs); {
		j := i
		for j+1 < len(hs) && hs[j+1].at-(hs[j].at+len(hs[j].minus)) <= 2*ctx {
			j++
		}
		start := max(0, hs[i].at-ctx)
		end := min(len(a), hs[j].at+len(hs[j].minus)+ctx)
		var body []string
		na, nb := 0, 0
		pos := start
		for k := i; k <= j; k++ {
			for ; pos < hs[k].at; pos++ {
				body = append(body, " "+a[pos])
				na++
				nb++
			}
			for _, l := range hs[k].minus {
				body = append(body, "-"+l)
				na++
				pos++
			}
			for _, l := range hs[k].plus {
				body = append(body, "+"+l)
				nb++
			}
		}
		for ; pos < end; pos++ {
			body = append(body, " "+a[pos])
			na++
			nb++
		}
		head := ""
		for k := start - 1; k >= 0; k-- {
			if l := a[k]; l != "" && (l[0] >= 'a' && l[0] <= 'z' || l[0] >= 'A' && l[0] <= 'Z' || l[0] == '_') {
				head = " " + l
				if len(head) > 81 {
					head = head[:81]
					for !validUTF8(head) {
						head = head[:len(head)-1]
					}
				}
				break
			}
		}
		sa, sb := start+1, start+1+delta
		if na == 0 {
			sa--
		}
		if nb == 0 {
			sb--
		}
		fmt.Fprintf(&out, "@@ -%s +%s @@%s\n%s\n", span(sa, na), span(sb, nb), head, strings.Join(body, "\n"))
		for k := i; k <= j; k++ {
			delta += len(hs[k].plus) - len(hs[k].minus)
		}
		i = j + 1
	}
	return out.String()
}

func validUTF8(s string) bool { return strings.ToValidUTF8(s, "") == s }

func span(s, n int) string {
	if n == 1 {
		return strconv.Itoa(s)
	}
	return fmt.Sprintf("%d,%d", s, n)
}

// place finds where a hunk of an old file goes in the tree. It returns the file and the line.
func (r *Repatcher) place(rel string, oldLines []string, h hunk, work map[string][]string) (string, int, error) {
	get := func(f string) []string {
		if l, ok := work[f]; ok {
			return l
		}
		return r.tree[f]
	}
	// files to look at: where the old lines went, first
	var cands []string
	hint := map[string]int{}
	for _, m := range r.maps[rel] {
		for _, run := range m.Runs {
			if run[0] <= h.at+max(1, len(h.minus)) && h.at+1 < run[0]+run[2]+1 {
				if _, ok := hint[m.New]; !ok {
					cands = append(cands, m.New)
				}
				hint[m.New] = run[1] + h.at + 1 - run[0]
			}
		}
	}
	for _, m := range r.maps[rel] {
		if _, ok := hint[m.New]; !ok {
			hint[m.New] = 0
			cands = append(cands, m.New)
		}
	}
	if _, ok := hint[rel]; !ok {
		if _, ok := r.tree[rel]; ok {
			hint[rel] = h.at + 1
			cands = append(cands, rel)
		}
	}
	if len(r.maps[rel]) == 0 {
		for _, c := range cands {
			hint[c] = h.at + 1
		}
	}
	var rest []string
	for f := range r.tree {
		if _, ok := hint[f]; !ok && strings.HasSuffix(f, "_test.go") == strings.HasSuffix(rel, "_test.go") {
			rest = append(rest, f)
		}
	}
	sort.Strings(rest)
	type match struct {
		f    string
		line int
	}
	try := func(files []string, ctx, ctx2 int, eq func(a, b string) bool) []match {
		a := max(0, h.at-ctx)
		z := min(len(oldLines), h.at+len(h.minus)+ctx2)
		want := oldLines[a:z]
		if len(want) == 0 {
			return nil
		}
		solid := false
		for _, l := range want {
			solid = solid || len(strings.TrimSpace(l)) > 2
		}
		if !solid {
			return nil
		}
		var ms []match
		for _, f := range files {
			ls := get(f)
			for i := 0; i+len(want) <= len(ls); i++ {
				ok := true
				for k := range want {
					if !eq(ls[i+k], want[k]) {
						ok = false
						break
					}
				}
				if ok {
					ms = append(ms, match{f, i + h.at - a})
				}
			}
		}
		return ms
	}
	exact := func(a, b string) bool { return a == b }
	loose := func(a, b string) bool { return squeeze(a) == squeeze(b) }
	var several []match
	for _, group := range [][]string{cands, rest} {
		for _, eq := range []func(a, b string) bool{exact, loose} {
			for _, c := range [][2]int{{6, 6}, {3, 3}, {2, 2}, {3, 1}, {1, 3}, {1, 1}, {3, 0}, {0, 3}, {1, 0}, {0, 1}, {0, 0}} {
				if len(h.minus) == 0 && c[0]+c[1] < 2 {
					continue
				}
				ms := try(group, c[0], c[1], eq)
				if len(ms) == 1 {
					return ms[0].f, ms[0].line, nil
				}
				if len(ms) > 1 {
					// the one nearest to where the map says
					best, second := -1, -1
					dist := func(m match) int {
						if hint[m.f] == 0 {
							return 1 << 30
						}
						d := m.line + 1 - hint[m.f]
						if d < 0 {
							d = -d
						}
						return d
					}
					for i, m := range ms {
						if best < 0 || dist(m) < dist(ms[best]) {
							second = best
							best = i
						} else if second < 0 || dist(m) < dist(ms[second]) {
							second = i
						}
					}
					if dist(ms[best]) < 40 && (second < 0 || dist(ms[second]) > 3*dist(ms[best])+3) {
						return ms[best].f, ms[best].line, nil
					}
					several = ms
				}
			}
		}
	}
	if len(several) > 0 {
		return "", 0, fmt.Errorf("the lines of the hunk at line %d stand in several places: %s:%d, %s:%d …", h.at+1, several[0].f, several[0].line+1, several[1].f, several[1].line+1)
	}
	return "", 0, fmt.Errorf("the lines of the hunk at line %d are not found: %s", h.at+1, strings.TrimSpace(strings.Join(h.minus, "⏎")))
}

var plusFile = regexp.MustCompile(`(?m)^(?:\+\+\+ b/|--- a/)(\S+)`)

// Patch rewrites one patch. notes tell what to look at; an error means that it is left for hand work.
func (r *Repatcher) Patch(text string) (result string, notes []string, err error) {
	i := strings.Index(text, "diff --git ")
	if i < 0 {
		if i = strings.Index(text, "--- a/"); i < 0 {
			return "", nil, fmt.Errorf("no diff in it")
		}
	}
	head, diff := text[:i], text[i:]
	head, ns := r.header(head)
	notes = append(notes, ns...)
	seen := map[string]bool{}
	var rels []string
	source := false
	for _, m := range plusFile.FindAllStringSubmatch(diff, -1) {
		if !seen[m[1]] {
			seen[m[1]] = true
			rels = append(rels, m[1])
			if r.isSource(m[1]) {
				source = true
			}
		}
	}
	pf, err := os.CreateTemp("", "p*.patch")
	if err != nil {
		return "", notes, err
	}
	defer os.Remove(pf.Name())
	pf.WriteString(diff)
	pf.Close()
	if !source && !r.quals(diff) {
		c := exec.Command("git", "apply", "--recount", "-C1", "--whitespace=nowarn", "--check", pf.Name())
		c.Dir = r.Dir
		if o, err := c.CombinedOutput(); err == nil {
			return head + diff, notes, nil
		} else if !strings.Contains(strings.Join(rels, " "), ".go") {
			return "", notes, fmt.Errorf("does not apply: %s", o)
		}
	}
	// both sides
	before := map[string][]byte{}
	for _, f := range rels {
		b, err := os.ReadFile(filepath.Join(r.Base, f))
		if err != nil {
			return "", notes, fmt.Errorf("not in the old tree: %s", f)
		}
		before[f] = b
	}
	c := exec.Command("git", "apply", "--recount", "-C1", "--whitespace=nowarn", pf.Name())
	c.Dir = r.Base
	o, aerr := c.CombinedOutput()
	after := map[string][]byte{}
	for _, f := range rels {
		b, err := os.ReadFile(filepath.Join(r.Base, f))
		if err == nil {
			after[f] = b
		}
		if err := os.WriteFile(filepath.Join(r.Base, f), before[f], 0o644); err != nil {
			return "", notes, err
		}
	}
	if aerr != nil {
		return "", notes, fmt.Errorf("does not apply to the old tree: %s", o)
	}
	work := map[string][]string{}
	used := map[string][]imp{}
	for _, f := range rels {
		if _, ok := r.tree[f]; !ok && !strings.HasSuffix(f, ".go") {
			if b, err := os.ReadFile(filepath.Join(r.Dir, f)); err == nil {
				r.tree[f] = strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
			}
		}
		if after[f] == nil {
			return "", notes, fmt.Errorf("it removes %s", f)
		}
		var a, b []string
		var ims []imp
		typed := r.isSource(f)
		if typed {
			a = r.old[f]
			if a == nil {
				a, _, err = r.render(f, nil)
				if err != nil {
					typed = false
					notes = append(notes, fmt.Sprintf("%s: by text only: %v", f, err))
				}
				r.old[f] = a
			}
		}
		if typed {
			other := map[string][]byte{}
			for _, x := range rels {
				other[x] = after[x]
			}
			b, ims, err = r.render(f, other)
			if err != nil {
				return "", notes, fmt.Errorf("%s: %w", f, err)
			}
		} else {
			a = strings.Split(strings.TrimSuffix(string(before[f]), "\n"), "\n")
			b = strings.Split(strings.TrimSuffix(string(after[f]), "\n"), "\n")
			if strings.HasSuffix(f, ".go") && len(r.Lines.Quals) > 0 {
				for _, l := range [][]string{a, b} {
					for i := range l {
						l[i] = qualified.ReplaceAllStringFunc(l[i], func(s string) string {
							if n := r.Lines.Quals[s]; n != "" {
								return n
							}
							return s
						})
					}
				}
				for d, n := range r.Lines.Names {
					p := modJoin(r.mod, d)
					i := imp{"", p}
					if path.Base(p) != n {
						i.name = n
					}
					ims = append(ims, i)
				}
			}
		}
		hs := diffLines(a, b)
		if len(hs) == 0 {
			return "", notes, fmt.Errorf("%s: no difference is left", f)
		}
		for k := len(hs) - 1; k >= 0; k-- {
			h := hs[k]
			nf, at, err := r.place(f, a, h, work)
			if err != nil {
				return "", notes, fmt.Errorf("%s: %w", f, err)
			}
			ls, ok := work[nf]
			if !ok {
				ls = r.tree[nf]
			}
			n := append([]string{}, ls[:at]...)
			n = append(n, h.plus...)
			n = append(n, ls[at+len(h.minus):]...)
			work[nf] = n
			used[nf] = append(used[nf], ims...)
		}
	}
	var nfs []string
	for f := range work {
		nfs = append(nfs, f)
	}
	sort.Strings(nfs)
	var out strings.Builder
	for _, f := range nfs {
		now := work[f]
		if strings.HasSuffix(f, ".go") {
			fixed, ns, err := r.fixImports(f, now, used[f])
			if err != nil {
				return "", notes, fmt.Errorf("%s: %w", f, err)
			}
			now = fixed
			notes = append(notes, ns...)
		}
		d := unified(f, r.tree[f], now)
		if d == "" {
			return "", notes, fmt.Errorf("%s: no difference is left", f)
		}
		out.WriteString(d)
	}
	pf2, err := os.CreateTemp("", "p*.patch")
	if err != nil {
		return "", notes, err
	}
	defer os.Remove(pf2.Name())
	pf2.WriteString(out.String())
	pf2.Close()
	c = exec.Command("git", "apply", "--check", pf2.Name())
	c.Dir = r.Dir
	if o, err := c.CombinedOutput(); err != nil {
		return "", notes, fmt.Errorf("what was made does not apply: %s", o)
	}
	return head + out.String(), notes, nil
}

var qualified = regexp.MustCompile(`\b[A-Za-z_]\w*\.[A-Z]\w*`)

// quals says whether a diff names something by a qualifier that has changed.
func (r *Repatcher) quals(diff string) bool {
	for _, m := range qualified.FindAllString(diff, -1) {
		if r.Lines.Quals[m] != "" {
			return true
		}
	}
	return false
}

func (r *Repatcher) isSource(rel string) bool {
	return path.Dir(rel) == r.Lines.Src && strings.HasSuffix(rel, ".go")
}

// fixImports removes imports that the change has made useless, and adds those it needs.
func (r *Repatcher) fixImports(rel string, lines []string, ims []imp) ([]string, []string, error) {
	parse := func(ls []string) (*File, error) {
		src := []byte(strings.Join(ls, "\n") + "\n")
		fset := token.NewFileSet()
		a, err := parser.ParseFile(fset, rel, src, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		return &File{Rel: rel, Src: src, AST: a, Fset: fset}, nil
	}
	f0, err := parse(r.tree[rel])
	if err != nil {
		return nil, nil, err
	}
	f, err := parse(lines)
	if err != nil {
		return nil, nil, err
	}
	names := map[string]string{}
	for p, t := range r.imports {
		names[p] = t.Name()
	}
	for d, n := range r.Lines.Names {
		names[modJoin(r.mod, d)] = n
	}
	all := func(int) bool { return true }
	u0, u1 := importsOf(f0, names, all), importsOf(f, names, all)
	want := map[imp]bool{}
	have := map[string]bool{}
	for _, s := range f.AST.Imports {
		p := strings.Trim(s.Path.Value, "\"`")
		i := imp{"", p}
		if s.Name != nil {
			i.name = s.Name.Name
		}
		if u0[i] && !u1[i] {
			continue // it was used, and is not
		}
		want[i] = true
		n := i.name
		if n == "" {
			n = names[p]
			if n == "" {
				n = guessName(p)
			}
		}
		have[n] = true
	}
	// qualifiers that are not imported
	byName := map[string]imp{}
	for _, i := range ims {
		n := i.name
		if n == "" {
			n = names[i.path]
			if n == "" {
				n = guessName(i.path)
			}
		}
		byName[n] = i
	}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := s.X.(*ast.Ident); ok && id.Obj == nil && !have[id.Name] {
				if i, ok := byName[id.Name]; ok && !fileDeclares(f0, id.Name) {
					want[i] = true
				}
			}
		}
		return true
	})
	same := true
	n := 0
	for _, s := range f.AST.Imports {
		p := strings.Trim(s.Path.Value, "\"`")
		i := imp{"", p}
		if s.Name != nil {
			i.name = s.Name.Name
		}
		n++
		same = same && want[i]
	}
	same = same && n == len(want)
	if same {
		return lines, nil, nil
	}
	w := &World{Module: r.mod}
	block, _ := w.importBlock(&outFile{imports: map[imp]bool{}}, nil, "")
	// line by line, so that the diff stays small
	keep := map[imp]bool{}
	var res []string
	notes := []string{}
	drop := map[int]bool{}
	for _, s := range f.AST.Imports {
		p := strings.Trim(s.Path.Value, "\"`")
		i := imp{"", p}
		if s.Name != nil {
			i.name = s.Name.Name
		}
		if want[i] {
			keep[i] = true
		} else {
			drop[f.line(f.off(s.Pos()))] = true
			notes = append(notes, fmt.Sprintf("%s: import %s goes", rel, p))
		}
	}
	var add []imp
	for i := range want {
		if !keep[i] {
			add = append(add, i)
			notes = append(notes, fmt.Sprintf("%s: import %s comes", rel, i.path))
		}
	}
	if len(drop) == len(f.AST.Imports) || len(f.AST.Imports) == 0 {
		// all at once
		o := &outFile{imports: want}
		block, _ = w.importBlock(o, nil, "")
		text := strings.Join(lines, "\n")
		var b strings.Builder
		last := 0
		done := false
		for _, d := range f.AST.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
				b.WriteString(text[last:f.off(g.Pos())])
				if !done {
					b.WriteString(block)
					done = true
				}
				last = f.off(g.End())
			}
		}
		if !done {
			e := f.off(f.AST.Name.End())
			b.WriteString(text[:e] + "\n\n" + block)
			last = e
		}
		b.WriteString(text[last:])
		g, err := format.Source([]byte(b.String() + "\n"))
		if err != nil {
			return nil, nil, err
		}
		return strings.Split(strings.TrimSuffix(string(g), "\n"), "\n"), notes, nil
	}
	single := ""
	for k, l := range lines {
		if drop[k+1] {
			continue
		}
		if t := strings.TrimSpace(l); strings.HasPrefix(t, "import ") && !strings.HasSuffix(t, "(") && len(add) > 0 {
			single = t
		}
		res = append(res, l)
	}
	if len(add) > 0 {
		ff, err := parse(res)
		if err != nil {
			return nil, nil, err
		}
		all := map[imp]bool{}
		for i := range want {
			all[i] = true
		}
		_ = single
		o := &outFile{imports: all}
		block, _ = w.importBlock(o, ff, "")
		text := strings.Join(res, "\n")
		var b strings.Builder
		last := 0
		done := false
		for _, d := range ff.AST.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
				b.WriteString(text[last:ff.off(g.Pos())])
				if !done {
					b.WriteString(block)
					done = true
				}
				last = ff.off(g.End())
			}
		}
		b.WriteString(text[last:])
		res = strings.Split(b.String(), "\n")
	}
	g, err := format.Source([]byte(strings.Join(res, "\n") + "\n"))
	if err != nil {
		return nil, nil, err
	}
	return strings.Split(strings.TrimSuffix(string(g), "\n"), "\n"), notes, nil
}

func fileDeclares(f *File, name string) bool {
	return f.AST.Scope != nil && f.AST.Scope.Lookup(name) != nil
}

var testLine = regexp.MustCompile(`^# Test: (\S+) -run (\S+)(.*)$`)

// header brings the packages of tests up to date.
func (r *Repatcher) header(head string) (string, []string) {
	var notes []string
	lines := strings.Split(head, "\n")
	for i, l := range lines {
		m := testLine.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		dir := path.Clean(m[1])
		if dir != r.Lines.Src {
			continue
		}
		top, _, _ := strings.Cut(strings.Trim(m[2], "'\""), "/")
		re, err := regexp.Compile(top)
		if err != nil {
			notes = append(notes, err.Error())
			continue
		}
		dirs := map[string][]string{}
		for n, ds := range r.tests {
			if !re.MatchString(n) {
				continue
			}
			for _, d := range ds {
				if _, ok := r.Lines.Names[d]; ok || d == dir {
					dirs[d] = append(dirs[d], n)
				}
			}
		}
		for _, ns := range dirs {
			sort.Strings(ns)
		}
		if len(dirs) == 0 {
			notes = append(notes, "no test "+top)
		}
		switch len(dirs) {
		case 0:
		case 1:
			for d := range dirs {
				if d != dir {
					lines[i] = "# Test: ./" + d + " -run " + m[2] + m[3]
				}
			}
		default:
			var ds []string
			for d := range dirs {
				ds = append(ds, d)
			}
			sort.Strings(ds)
			var to []string
			for _, d := range ds {
				p := "./" + d
				if d == "." {
					p = "."
				}
				names := dirs[d]
				re := "^" + names[0] + "$"
				if len(names) > 1 {
					re = "^(" + strings.Join(names, "|") + ")$"
				}
				to = append(to, "# Test: "+p+" -run "+re+m[3])
			}
			lines[i] = strings.Join(to, "\n")
			notes = append(notes, "its tests are in several packages now")
		}
	}
	return strings.Join(lines, "\n"), notes
}
