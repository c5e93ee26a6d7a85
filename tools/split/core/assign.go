package core

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"path/filepath"
	"sort"
	"strings"
)

func (w *World) target(dir string) *Pkg {
	if dir == w.Source.Dir {
		return w.Source
	}
	return w.pkgBy[dir]
}

func (w *World) xtarget(p *Pkg) *Pkg {
	if p == w.Source {
		return w.SourceX
	}
	k := p.Dir + " x"
	if w.pkgBy[k] == nil {
		w.pkgBy[k] = &Pkg{Dir: p.Dir, Path: p.Path, Name: p.Name + "_test", XTest: true, Rank: 1 << 21}
	}
	return w.pkgBy[k]
}

func modJoin(mod, dir string) string {
	if dir == "." {
		return mod
	}
	return mod + "/" + dir
}

// Assign gives each unit its package.
func (w *World) Assign() error {
	pl := w.Plan
	for i, d := range pl.Dirs {
		if d == w.Source.Dir {
			continue
		}
		p := &Pkg{Dir: d, Path: modJoin(w.Module, d), Name: path.Base(d), Rank: i + 1}
		if n := w.existingName[p.Path]; n != "" {
			p.Name, p.Existing = n, true
		}
		if n := pl.Names[d]; n != "" {
			p.Name = n
		}
		w.pkgBy[d] = p
		w.Pkgs = append(w.Pkgs, p)
	}
	w.Pkgs = append(w.Pkgs, w.Source)
	for _, f := range w.Order {
		if !f.Of {
			if t := w.target(f.Pkg.Dir); t != nil && t.Existing && !strings.HasSuffix(f.Pkg.Name, "_test") {
				f.Pkg = t
				for _, u := range f.Units {
					u.Pkg = t
				}
			}
			continue
		}
		f.Pkg = w.Source
		if f.WasX {
			f.Pkg = w.SourceX
		}
	}
	var errs []string
	bad := func(format string, a ...any) { errs = append(errs, fmt.Sprintf(format, a...)) }
	given := map[*File]int{} // 1 by glob, 2 by name
	base := func(f *File) string { return path.Base(f.Rel) }
	for _, pf := range pl.Files {
		glob := strings.ContainsAny(pf.Pattern, "*?[")
		p := w.target(pf.Dir)
		n := 0
		for _, f := range w.Order {
			if !f.Of {
				continue
			}
			ok, err := filepath.Match(pf.Pattern, base(f))
			if err != nil {
				return err
			}
			if !ok || glob && f.Test && !strings.HasSuffix(pf.Pattern, "_test.go") && !strings.HasSuffix(pf.Pattern, "_test*.go") {
				continue
			}
			n++
			skip := false
			for _, x := range pl.Exclude {
				if m, _ := filepath.Match(x.Pattern, base(f)); m && x.Dir == pf.Dir {
					skip = true
				}
			}
			if skip {
				continue
			}
			how := 2
			if glob {
				how = 1
			}
			if given[f] > how {
				continue
			}
			if given[f] == how && f.Pkg != p && f.Pkg != w.xtarget(p) {
				bad("plan line %d: %s is in %s already", pf.Line, f.Rel, f.Pkg)
				continue
			}
			given[f] = how
			f.Pkg = p
			if f.WasX {
				f.Pkg = w.xtarget(p)
			}
		}
		if n == 0 {
			bad("plan line %d: no file %s", pf.Line, pf.Pattern)
		}
	}
	for _, x := range pl.XTest {
		n := 0
		for _, f := range w.Order {
			if ok, _ := filepath.Match(x.Pattern, base(f)); ok && f.Of && f.Test {
				n++
				p := w.target(x.Dir)
				if p == nil {
					bad("plan line %d: no package %s", x.Line, x.Dir)
					break
				}
				f.Pkg = w.xtarget(p)
			}
		}
		if n == 0 {
			bad("plan line %d: no file %s", x.Line, x.Pattern)
		}
	}
	for _, f := range w.Order {
		if !f.Of {
			continue
		}
		f.Out = path.Join(f.Pkg.Dir, base(f))
		for _, u := range f.Units {
			u.Pkg, u.Out = f.Pkg, f.Out
		}
	}
	for _, d := range pl.Decls {
		p := w.target(d.Dir)
		for _, f := range w.Order {
			if !f.Of {
				continue
			}
			for _, u := range f.Units {
				hit := false
				for _, n := range u.Names {
					if n == d.Name {
						hit = true
					}
				}
				exact := hit
				if d.Methods && u.Recv != "" && u.Recv == d.Name {
					hit = true
				}
				if !hit {
					continue
				}
				if u.Planned && !exact {
					continue // its own line counts
				}
				d.Found = true
				u.Planned = exact
				u.Pkg = p
				if f.WasX {
					u.Pkg = w.xtarget(p)
				}
				name := d.File
				if name == "" {
					name = base(f)
				}
				if f.Test && !strings.HasSuffix(name, "_test.go") {
					name = strings.TrimSuffix(name, ".go") + "_test.go"
				}
				u.Out = path.Join(u.Pkg.Dir, name)
				// to where its file goes anyway
				if u.Pkg == f.Pkg && d.File == "" {
					u.Out = f.Out
				}
			}
		}
		if !d.Found {
			bad("plan line %d: no declaration %s", d.Line, d.Name)
		}
	}
	for _, d := range pl.Copies {
		dir, x := strings.CutPrefix(d.Dir, "xtest:")
		p := w.target(dir)
		if p == nil {
			bad("plan line %d: no package %s", d.Line, dir)
			continue
		}
		if x {
			p = w.xtarget(p)
		}
		for _, f := range w.Order {
			if !f.Of {
				continue
			}
			for _, u := range f.Units {
				hit := d.Methods && u.Recv != "" && u.Recv == d.Name
				for _, n := range u.Names {
					hit = hit || n == d.Name
				}
				if hit {
					d.Found = true
					w.clone(u, p, d.File)
				}
			}
		}
		if !d.Found {
			bad("plan line %d: no declaration %s", d.Line, d.Name)
		}
	}
	for a := range pl.Alias {
		found := false
		for _, o := range w.ObjOrder {
			found = found || !o.Member && o.Name == a
		}
		if !found {
			bad("alias %s: no such name", a)
		}
	}
	for _, f := range w.Order {
		for _, u := range f.Units {
			if u.Pkg == nil {
				bad("%s %s has no package", u.Pos(), u.Name())
			}
		}
	}
	sort.Strings(errs)
	if len(errs) > 0 {
		return fmt.Errorf("%s", strings.Join(errs, "\n"))
	}
	return nil
}

// Pull moves down what lower packages use, until no arrow points upwards, and returns the plan lines that say so.
func (w *World) Pull() []string {
	byName := map[string]*Unit{}
	for _, f := range w.Order {
		if f.Of && !f.Test {
			for _, u := range f.Units {
				if u.Recv == "" {
					for _, n := range u.Names {
						byName[n] = u
					}
				}
			}
		}
	}
	moved := map[*Unit]bool{}
	to := func(u *Unit, p *Pkg) {
		us := []*Unit{u}
		if u.Group.Gen != nil && u.Group.Gen.Tok == token.CONST { // iota
			for _, x := range u.Group.Units {
				if len(x.Node.(*ast.ValueSpec).Values) == 0 {
					us = u.Group.Units
				}
			}
		}
		for _, u := range us {
			u.Pkg = p
			u.Out = path.Join(p.Dir, path.Base(u.File.Rel))
			moved[u] = true
		}
	}
	for again := true; again; {
		again = false
		for _, o := range w.ObjOrder {
			if o.Unit == nil || o.Unit.File.Test {
				continue
			}
			for _, r := range o.Refs {
				if r.File.Of && !r.File.Test && r.Unit != nil && !r.Def && o.Unit.Pkg.Rank > r.Unit.Pkg.Rank {
					to(o.Unit, r.Unit.Pkg)
					again = true
				}
			}
		}
		for _, f := range w.Order {
			if !f.Of || f.Test {
				continue
			}
			for _, u := range f.Units {
				if u.Recv != "" && byName[u.Recv] != nil && byName[u.Recv].Pkg != u.Pkg {
					if byName[u.Recv].Pkg.Rank > u.Pkg.Rank {
						to(byName[u.Recv], u.Pkg)
					} else {
						to(u, byName[u.Recv].Pkg)
					}
					again = true
				}
			}
		}
	}
	var lines []string
	for _, f := range w.Order {
		if !f.Of {
			continue
		}
		by := map[string][]string{}
		for _, u := range f.Units {
			if moved[u] && len(u.Names) > 0 {
				by[u.Pkg.Dir] = append(by[u.Pkg.Dir], u.Names[0])
			}
		}
		for d, l := range by {
			lines = append(lines, "decl "+d+" "+strings.Join(l, " ")+"   # "+f.Rel)
		}
	}
	sort.Strings(lines)
	return lines
}

// clone copies a declaration to another package.
func (w *World) clone(u *Unit, p *Pkg, file string) *Unit {
	if w.refsOf == nil {
		w.refsOf, w.impsIn, w.objsOf = map[*Unit][]*Ref{}, map[*Unit][]*ImpRef{}, map[*Unit][]*Obj{}
		for _, o := range w.ObjOrder {
			if o.Unit != nil {
				w.objsOf[o.Unit] = append(w.objsOf[o.Unit], o)
			}
			for _, r := range o.Refs {
				if r.Unit != nil {
					w.refsOf[r.Unit] = append(w.refsOf[r.Unit], r)
				}
			}
		}
		for _, im := range w.Imps {
			if im.Unit != nil {
				w.impsIn[im.Unit] = append(w.impsIn[im.Unit], im)
			}
		}
	}
	if file == "" {
		file = path.Base(u.File.Rel)
	}
	if u.File.Test && !strings.HasSuffix(file, "_test.go") {
		file = strings.TrimSuffix(file, ".go") + "_test.go"
	}
	c := *u
	c.Pkg, c.Out, c.Orig = p, path.Join(p.Dir, file), u
	w.Clones = append(w.Clones, &c)
	for _, o := range w.objsOf[u] {
		if o.copies == nil {
			o.copies = map[string]*Unit{}
		}
		o.copies[p.String()] = &c
	}
	for _, r := range w.refsOf[u] {
		n := *r
		n.Unit = &c
		r.Obj.Refs = append(r.Obj.Refs, &n)
		w.refsOf[&c] = append(w.refsOf[&c], &n)
	}
	for _, im := range w.impsIn[u] {
		n := *im
		n.Unit = &c
		w.Imps = append(w.Imps, &n)
	}
	return &c
}

// Helpers copies helpers of tests to the packages whose tests use them, and returns the plan lines that say so.
func (w *World) Helpers() []string {
	type key struct {
		u *Unit
		p string
	}
	done := map[key]bool{}
	lines := map[string]map[string][]string{} // package, source file
	size := map[string]int{}
	types := map[string]*Unit{}
	methods := map[string][]*Unit{}
	for _, f := range w.Order {
		if !f.Of || !f.Test {
			continue
		}
		for _, u := range f.Units {
			if u.Recv != "" {
				methods[u.Recv] = append(methods[u.Recv], u)
			} else if _, ok := u.Node.(*ast.TypeSpec); ok {
				types[u.Names[0]] = u
			}
		}
	}
	satisfying := map[*Unit]bool{}
	for _, pr := range w.pairs {
		satisfying[pr[1].Unit] = true
	}
	for f := range w.Files {
		for _, u := range w.Files[f].Units {
			// methods of the standard library's interfaces
			if i := strings.LastIndexByte(u.Name(), '.'); u.Recv != "" && i >= 0 && ast.IsExported(u.Name()[i+1:]) {
				satisfying[u] = true
			}
		}
	}
	for again := true; again; {
		again = false
		for _, o := range w.ObjOrder {
			if o.Unit == nil || !o.Unit.File.Test {
				continue
			}
			for i := 0; i < len(o.Refs); i++ {
				r := o.Refs[i]
				if r.Def || r.Unit == nil || !r.File.Of || w.visible(r.Unit.Pkg, o) {
					continue
				}
				p := r.Unit.Pkg
				if r.File.WasX && p.Dir == o.Unit.Pkg.Dir && ast.IsExported(o.Name) {
					continue
				}
				us := []*Unit{o.Unit}
				if o.Unit.Recv != "" {
					if t := types[o.Unit.Recv]; t != nil {
						us = append(us, t)
					}
				}
				for _, u := range us[len(us)-1:] { // a type: methods that satisfy interfaces
					if u.Recv == "" {
						for _, m := range methods[u.Names[0]] {
							if satisfying[m] {
								us = append(us, m)
							}
						}
					}
				}
				for _, u := range us {
					k := key{u, p.String()}
					if done[k] {
						continue
					}
					done[k] = true
					again = true
					w.clone(u, p, "")
					n := 1
					for _, c := range u.File.Src[u.Start:u.End] {
						if c == '\n' {
							n++
						}
					}
					size[p.String()] += n
					d := p.Dir
					if p.XTest {
						d = "xtest:" + d
					}
					if lines[d] == nil {
						lines[d] = map[string][]string{}
					}
					lines[d][u.File.Rel] = append(lines[d][u.File.Rel], u.Names[0])
				}
			}
		}
	}
	var res []string
	for d, m := range lines {
		for f, l := range m {
			sort.Strings(l)
			res = append(res, "copy "+d+" "+strings.Join(l, " ")+"   # "+f)
		}
	}
	sort.Strings(res)
	for p, n := range size {
		res = append(res, fmt.Sprintf("# %s: %d lines of helpers", p, n))
	}
	return res
}
