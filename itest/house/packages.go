package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// pkg is a package of the module, without its tests. Its name is its path relative to the module, "." for the root.
type pkg struct {
	*packages.Package
	name string
}

// load type-checks the packages of the module at dir, without modules nested in it.
func load(dir string) ([]pkg, error) {
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedModule |
			packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo,
		Dir: dir,
		// A module is loaded as its users get it; it need not belong to a workspace.
		Env: append(os.Environ(), "GOWORK=off"),
	}, "./...")
	if err != nil {
		return nil, err
	}
	var pkgs []pkg
	for _, p := range loaded {
		switch {
		case len(p.Errors) > 0:
			return nil, fmt.Errorf("%s: %w", p.PkgPath, p.Errors[0])
		case len(p.GoFiles) == 0:
			continue // it has tests only
		}
		name := strings.TrimPrefix(strings.TrimPrefix(p.PkgPath, p.Module.Path), "/")
		pkgs = append(pkgs, pkg{p, cmp.Or(name, ".")})
	}
	slices.SortFunc(pkgs, func(a, b pkg) int { return strings.Compare(a.name, b.name) })
	return pkgs, nil
}

// file returns the name of the file in which pos is.
func (p pkg) file(pos token.Pos) string { return filepath.Base(p.Fset.Position(pos).Filename) }

// importsUp lists the imports of packages that stand on a floor above the importing one. It fails when a package stands
// on none.
func importsUp(pkgs []pkg, floors [][]string) ([]string, error) {
	floor := map[string]int{}
	for i, names := range floors {
		for _, name := range names {
			floor[name] = i
		}
	}
	var up []string
	for _, p := range pkgs {
		from, ok := floor[p.name]
		if !ok {
			return nil, fmt.Errorf("package %s stands on no floor: add it to floors in itest/house/rules.go, "+
				"not below any package that it imports", p.name)
		}
		for _, f := range p.Syntax {
			for _, spec := range f.Imports {
				imported, _ := strconv.Unquote(spec.Path.Value)
				i := slices.IndexFunc(pkgs, func(q pkg) bool { return q.PkgPath == imported })
				if i >= 0 && floor[pkgs[i].name] > from {
					at := p.Fset.Position(spec.Pos())
					up = append(up, fmt.Sprintf("%s:%d: %s (floor %d) imports %s (floor %d)",
						path.Join(p.name, filepath.Base(at.Filename)), at.Line, p.name, from, pkgs[i].name,
						floor[pkgs[i].name]))
				}
			}
		}
	}
	return up, nil
}

// functionFields lists the fields of structs of p that hold a function: what they call, a reader finds only where they
// are set.
func functionFields(p pkg) (fields []string) {
	for _, f := range p.Syntax {
		for n := range ast.Preorder(f) {
			structure, ok := n.(*ast.StructType)
			if !ok {
				continue
			}
			for _, field := range structure.Fields.List {
				if _, ok := p.TypesInfo.TypeOf(field.Type).Underlying().(*types.Signature); !ok {
					continue
				}
				for _, name := range field.Names {
					at := p.Fset.Position(name.Pos())
					fields = append(fields, fmt.Sprintf("%s:%d: %s", path.Join(p.name, p.file(name.Pos())), at.Line,
						name.Name))
				}
			}
		}
	}
	return fields
}
