package main

import (
	"go/ast"
	"maps"
	"slices"
)

// uses says which files of a package each of its files uses: uses["a.go"]["b.go"] is true if a.go names something that
// is declared in b.go, at package level, as a method or as a field.
type uses map[string]map[string]bool

func usesOf(p pkg) uses {
	u := uses{}
	for _, f := range p.Syntax {
		from := p.file(f.Package)
		u[from] = map[string]bool{}
		for n := range ast.Preorder(f) {
			id, ok := n.(*ast.Ident)
			if !ok {
				continue
			}
			used := p.TypesInfo.Uses[id]
			if used == nil || used.Pkg() != p.Types || !used.Pos().IsValid() {
				continue
			}
			if to := p.file(used.Pos()); to != from {
				u[from][to] = true
			}
		}
	}
	return u
}

// knot returns the largest strongly connected component: files each of which uses all others, directly or through one
// another. It returns nothing if no two files do.
func (u uses) knot() (largest []string) {
	reached := map[string]map[string]bool{}
	for from := range u {
		reached[from] = map[string]bool{}
		u.reach(from, reached[from])
	}
	for _, a := range slices.Sorted(maps.Keys(u)) {
		var knot []string
		for b := range reached[a] {
			if reached[b][a] {
				knot = append(knot, b)
			}
		}
		if len(knot) > len(largest) {
			largest = knot
		}
	}
	slices.Sort(largest)
	return largest
}

// reach adds to reached the files that from uses, directly or indirectly.
func (u uses) reach(from string, reached map[string]bool) {
	for to := range u[from] {
		if !reached[to] {
			reached[to] = true
			u.reach(to, reached)
		}
	}
}
