package delayedvet

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/inspector"
)

// variables holds, for each variable of the package that is set once and whose address is not taken, what it is set to.
type variables map[types.Object]ast.Expr

// variablesOf reads the variables of a package.
func variablesOf(pass *analysis.Pass, in *inspector.Inspector) variables {
	vars := variables{}
	changed := map[types.Object]bool{}
	change := func(e ast.Expr) {
		if index, ok := e.(*ast.IndexExpr); ok {
			e = index.X // an element of a list that is written out elsewhere
		}
		if id, ok := ast.Unparen(e).(*ast.Ident); ok {
			if obj := pass.TypesInfo.Uses[id]; obj != nil {
				changed[obj] = true
			}
		}
	}
	set := func(lhs []*ast.Ident, rhs []ast.Expr) {
		for i, id := range lhs {
			if obj := pass.TypesInfo.Defs[id]; obj != nil && len(lhs) == len(rhs) {
				vars[obj] = rhs[i]
			}
		}
	}
	in.Preorder([]ast.Node{
		(*ast.ValueSpec)(nil), (*ast.AssignStmt)(nil), (*ast.RangeStmt)(nil), (*ast.IncDecStmt)(nil),
		(*ast.UnaryExpr)(nil),
	}, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.ValueSpec:
			set(n.Names, n.Values)
		case *ast.AssignStmt:
			ids := make([]*ast.Ident, len(n.Lhs))
			for i, e := range n.Lhs {
				change(e) // a use, if := does not define it
				if ids[i], _ = e.(*ast.Ident); ids[i] == nil {
					ids[i] = new(ast.Ident)
				}
			}
			if n.Tok == token.DEFINE {
				set(ids, n.Rhs)
			}
		case *ast.RangeStmt:
			change(n.Key)
			change(n.Value)
		case *ast.IncDecStmt:
			change(n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				change(n.X)
			}
		}
	})
	for obj := range changed {
		delete(vars, obj)
	}
	return vars
}

// maxSteps bounds how many variables source follows, which may refer to each other.
const maxSteps = 16

// source returns the expression that gives e its value: through parentheses and through variables of this package.
func (c *checker) source(e ast.Expr) ast.Expr {
	for range maxSteps {
		e = ast.Unparen(e)
		id, ok := e.(*ast.Ident)
		if !ok {
			return e
		}
		obj, ok := c.pass.TypesInfo.Uses[id].(*types.Var)
		if !ok {
			return e
		}
		value, ok := c.vars[obj]
		if !ok {
			return e
		}
		e = value
	}
	return e
}

// madeBy returns the call that gives an expression its value, and the full name of what it calls; nil if there is none.
func (c *checker) madeBy(e ast.Expr) (call *ast.CallExpr, name string) {
	if call, _ = c.source(e).(*ast.CallExpr); call != nil {
		name = c.callee(call)
	}
	return call, name
}

// elements returns the elements of a list that is written out, nil is one of none. It reports whether they are known.
func (c *checker) elements(list ast.Expr) (elems []ast.Expr, known bool) {
	list = c.source(list)
	if c.pass.TypesInfo.Types[list].IsNil() {
		return nil, true
	}
	lit, ok := list.(*ast.CompositeLit)
	if !ok {
		return nil, false
	}
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			e = kv.Value
		}
		elems = append(elems, e)
	}
	return elems, true
}

// arguments returns the arguments of a call from index first on. It reports whether they are known: the elements of
// list... are if it is written out.
func (c *checker) arguments(call *ast.CallExpr, first int) (args []ast.Expr, known bool) {
	if len(call.Args) < first {
		return nil, false
	}
	args = call.Args[first:]
	if len(call.Args) == 1 {
		if _, several := c.pass.TypesInfo.TypeOf(call.Args[0]).(*types.Tuple); several {
			return nil, false // f(g()) with several results of g
		}
	}
	if !call.Ellipsis.IsValid() {
		return args, true
	}
	if len(args) == 0 {
		return nil, false
	}
	// f(list...) has the list only, as all of these parameters are variadic ones.
	return c.elements(args[len(args)-1])
}
