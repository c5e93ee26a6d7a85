package delayedvet

import (
	"bytes"
	"go/ast"
	"go/printer"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// fix is a change that certainly does what was meant.
type fix struct {
	text  string
	edits []analysis.TextEdit
}

// source text of an expression, as gofmt prints it.
func (c *checker) print(n ast.Node) string {
	var b bytes.Buffer
	if printer.Fprint(&b, c.pass.Fset, n) != nil {
		return ""
	}
	return b.String()
}

// replace returns the edit that writes text in place of a node.
func replace(n ast.Node, text string) analysis.TextEdit {
	return analysis.TextEdit{Pos: n.Pos(), End: n.End(), NewText: []byte(text)}
}

// insert returns the edit that writes text at pos.
func insert(pos token.Pos, text string) analysis.TextEdit {
	return analysis.TextEdit{Pos: pos, End: pos, NewText: []byte(text)}
}

// remove returns the edit that removes element i of a list, with the comma beside it.
func remove(list []ast.Expr, i int) analysis.TextEdit {
	switch {
	case i > 0:
		return analysis.TextEdit{Pos: list[i-1].End(), End: list[i].End()}
	case len(list) > 1:
		return analysis.TextEdit{Pos: list[0].Pos(), End: list[1].Pos()}
	}
	return replace(list[0], "")
}

// contextFirst turns q.Delay(ctx, fn, ...) into q.DelayContext(ctx, fn, ...).
func (c *checker) contextFirst(call *ast.CallExpr, as form) *fix {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || len(call.Args) < 2 {
		return nil
	}
	t := c.pass.TypesInfo.TypeOf(call.Args[as.fn+1])
	if _, isFunc := underlying(t).(*types.Signature); !isFunc && !c.isFunction(t) {
		return nil
	}
	switch as.name {
	case "Delay":
		return &fix{"Call DelayContext", []analysis.TextEdit{replace(sel.Sel, "DelayContext")}}
	case "Call":
		return &fix{"Leave the context out", []analysis.TextEdit{remove(call.Args, as.fn)}}
	}
	return nil
}

// misplacedArgument reports an argument that belongs elsewhere: argument i of the delayed function.
func (c *checker) misplacedArgument(call *ast.CallExpr, f *function, as form, args []ast.Expr, i int, what string) {
	want := "no argument"
	switch {
	case f.Variadic && i >= len(f.Params)-1:
		want = f.Elem.Type
	case i < len(f.Params):
		want = f.Params[i].Type
	}
	text := f.argument(i) + ": expected " + want + ", found " + what
	if as.name != "Delay" {
		text = strings.Replace(text, "call DelayContext(ctx, fn, ...)", "leave it out, the worker provides one", 1)
	}
	c.add(call, args[i], text, c.moved(call, as, args, i))
}

// moved returns the fix for an argument that belongs elsewhere; nil if none is certain.
func (c *checker) moved(call *ast.CallExpr, as form, args []ast.Expr, i int) *fix {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || as.test || as.typed || call.Ellipsis.IsValid() {
		return nil
	}
	t := c.pass.TypesInfo.TypeOf(args[i])
	contexts, opts := 0, []int{}
	for k, e := range args {
		switch at := c.pass.TypesInfo.TypeOf(e); {
		case c.isContext(at):
			contexts++
		case types.Implements(at, c.option):
			opts = append(opts, k)
		}
	}
	switch {
	case c.isContext(t) && contexts == 1 && i == 0 && as.name == "Delay":
		return &fix{"Call DelayContext", []analysis.TextEdit{
			replace(sel.Sel, "DelayContext"), insert(call.Args[as.fn].Pos(), c.print(args[0])+", "),
			remove(call.Args, as.args),
		}}
	case c.isContext(t) && contexts == 1 && i == 0 && as.name == "Call":
		return &fix{"Leave the context out", []analysis.TextEdit{remove(call.Args, as.args)}}
	case types.Implements(t, c.option) && as.name != "Call" && i == opts[0]:
		// One fix moves all of them, beside the first.
		texts := make([]string, len(opts))
		edits := make([]analysis.TextEdit, len(opts), len(opts)+1)
		for n, k := range opts {
			texts[n], edits[n] = c.print(args[k]), remove(call.Args, as.args+k) // behind the function
		}
		edits = append(edits, insert(sel.X.End(), ".With("+strings.Join(texts, ", ")+")"))
		return &fix{"Give the options to With", edits}
	}
	return nil
}

// methodExpression turns the method value m.Send into (*Mailer).Send, if the type can be named here.
func (c *checker) methodExpression(e *ast.SelectorExpr, s *types.Selection, fn *types.Func) *fix {
	pointed, pointer := pointedBy(s.Recv())
	if r := fn.Signature().Recv(); !pointer && r != nil {
		_, pointer = pointedBy(r.Type()) // &m is taken
	}
	named, ok := pointed.(*types.Named)
	if !ok || types.IsInterface(named) || named.TypeArgs().Len() > 0 || !fn.Exported() || named.Obj().Pkg() == nil ||
		named.Obj().Parent() != named.Obj().Pkg().Scope() || types.IsInterface(fn.Signature().Recv().Type()) {
		return nil
	}
	name := c.nameHere(named.Obj(), e.Pos())
	if name == "" {
		return nil
	}
	if pointer {
		name = "(*" + name + ")"
	}
	return &fix{"Give the method expression", []analysis.TextEdit{replace(e.X, name)}}
}

// nameHere returns how the file at pos writes the name of a type; "" if it does not import its package.
func (c *checker) nameHere(obj *types.TypeName, pos token.Pos) string {
	if obj.Pkg() == c.pass.Pkg {
		return obj.Name()
	}
	file := c.fileAt(pos)
	if file == nil || !obj.Exported() {
		return ""
	}
	for _, spec := range file.Imports {
		name := c.pass.TypesInfo.PkgNameOf(spec)
		if name != nil && name.Imported() == obj.Pkg() && name.Name() != "_" {
			if name.Name() == "." {
				return obj.Name()
			}
			return name.Name() + "." + obj.Name()
		}
	}
	return ""
}
