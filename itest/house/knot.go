package main

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// uses says which files of a package each of its files uses: uses["a.go"]["b.go"] is the first thing declared in b.go
// (at package level, a method or a field) that a.go names.
type uses map[string]map[string]string

func usesOf(p pkg) uses {
	u := uses{}
	for _, f := range p.Syntax {
		from := p.file(f.Package)
		u[from] = map[string]string{}
		for n := range ast.Preorder(f) {
			id, ok := n.(*ast.Ident)
			if !ok {
				continue
			}
			used := p.TypesInfo.Uses[id]
			if used == nil || used.Pkg() != p.Types || !used.Pos().IsValid() {
				continue
			}
			if to := p.file(used.Pos()); to != from && u[from][to] == "" {
				u[from][to] = used.Name()
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

// within describes, in a line for each file of a knot, which other files of the knot it uses, and one reason each.
func (u uses) within(knot []string) []string {
	var lines []string
	for _, from := range knot {
		var used []string
		for _, to := range knot {
			if name := u[from][to]; name != "" {
				used = append(used, fmt.Sprintf("%s (%s)", to, name))
			}
		}
		lines = append(lines, fmt.Sprintf("  %s uses %s", from, strings.Join(used, ", ")))
	}
	return lines
}
