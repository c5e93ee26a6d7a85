package delayedvet

import (
	"go/ast"
	"go/types"
	"slices"
)

func inRoot(name string) string   { return root + "." + name }
func ofQueue(name string) string  { return "(*" + root + ".Queue)." + name }
func ofWorker(name string) string { return "(*" + root + ".Worker)." + name }
func ofRef(name string) string    { return "(*" + root + ".Ref)." + name }
func inTest(name string) string   { return root + "/delayedtest." + name }
func inMain(name string) string   { return root + "/workermain." + name }

// form describes where a call has the delayed function and its arguments.
type form struct {
	fn   int    // index of the function
	args int    // index of its first argument
	name string // Delay for one, which has a form with a context
	test bool   // an expectation, in which arguments may be wildcards and the function a *Task

	typed bool // a method of a typed function; fn is where its queue stands
}

// calls are the functions and methods that take a function with its arguments.
var calls = map[string]form{
	ofQueue("Delay"):          {fn: 0, args: 1, name: "Delay"},
	ofQueue("DelayContext"):   {fn: 1, args: 2, name: "DelayContext"},
	inRoot("Call"):            {fn: 0, args: 1, name: "Call"},
	ofTyped("Delay"):          {fn: 0, args: 1, name: "Delay", typed: true},
	ofTyped("DelayContext"):   {fn: 1, args: 2, name: "DelayContext", typed: true},
	ofTyped("Call"):           {fn: 0, args: 0, name: "Call", typed: true},
	inTest("RequireEnqueued"): {fn: 2, args: 3, name: "RequireEnqueued", test: true},
	inTest("RefuteEnqueued"):  {fn: 2, args: 3, name: "RefuteEnqueued", test: true},
	inTest("RequireCount"):    {fn: 3, args: 4, name: "RequireCount", test: true},
}

// imported returns the package of a path that pkg is or imports, directly or not; nil if there is none.
func imported(pkg *types.Package, path string) *types.Package {
	seen := map[*types.Package]bool{}
	for todo := []*types.Package{pkg}; len(todo) > 0; todo = todo[1:] {
		if todo[0].Path() == path {
			return todo[0]
		}
		for _, next := range todo[0].Imports() {
			if !seen[next] {
				seen[next], todo = true, append(todo, next)
			}
		}
	}
	return nil
}

func interfaceIn(pkg *types.Package, name string) *types.Interface {
	if pkg == nil {
		return nil
	}
	obj := pkg.Scope().Lookup(name)
	if obj == nil {
		return nil
	}
	i, _ := obj.Type().Underlying().(*types.Interface)
	return i
}

// typeName returns the path and the name of a type that has one, "" for others.
func (c *checker) typeName(t types.Type) string {
	if name := nameOf(t); name != nil {
		return name.Pkg().Path() + "." + name.Name()
	}
	return ""
}

// nameOf returns the declaration of a type; nil if it has no name or belongs to the language.
func nameOf(t types.Type) *types.TypeName {
	if t == nil {
		return nil
	}
	if named, ok := types.Unalias(t).(*types.Named); ok && named.Obj().Pkg() != nil {
		return named.Obj()
	}
	return nil
}

// pointedBy returns what a pointer points to, and other types themselves.
func pointedBy(t types.Type) (elem types.Type, pointer bool) {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		return types.Unalias(p.Elem()), true
	}
	return types.Unalias(t), false
}

// lastName returns the identifier that is a name, or the last one of a selection; nil for other expressions.
func lastName(e ast.Expr) *ast.Ident {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return e.Sel
	}
	return nil
}

// parent returns the node around the last one of a stack, without parentheses; nil if there is none.
func parent(stack []ast.Node) ast.Node {
	for _, n := range slices.Backward(stack[:len(stack)-1]) {
		if _, ok := n.(*ast.ParenExpr); !ok {
			return n
		}
	}
	return nil
}

// isPointerTo reports whether t is a pointer to the type of a name.
func (c *checker) isPointerTo(t types.Type, name string) bool {
	elem, pointer := pointedBy(t)
	return pointer && c.typeName(elem) == name
}

// isContext reports whether values of t are contexts, whatever it holds.
func (c *checker) isContext(t types.Type) bool {
	return t != nil && types.Implements(t, c.ctx)
}

// fieldOf returns the value of a field in a literal with names; nil if it is not given.
func fieldOf(lit *ast.CompositeLit, name string) ast.Expr {
	for _, elt := range lit.Elts {
		if kv, ok := elt.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok && key.Name == name {
				return kv.Value
			}
		}
	}
	return nil
}
