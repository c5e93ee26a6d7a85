package delayedvet

import (
	"bytes"
	"go/ast"
	"go/printer"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// fix is a change that certainly says what was meant.
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

// remove returns the edit that removes argument i of a call, with the comma beside it.
func remove(args []ast.Expr, i int) analysis.TextEdit {
	switch {
	case i+1 < len(args):
		return analysis.TextEdit{Pos: args[i].Pos(), End: args[i+1].Pos()}
	case i > 0:
		return analysis.TextEdit{Pos: args[i-1].End(), End: args[i].End()}
	}
	return analysis.TextEdit{Pos: args[i].Pos(), End: args[i].End()}
}

// contextFirst turns q.Delay(ctx, fn, ...) into q.DelayContext(ctx, fn, ...).
func (c *checker) contextFirst(call *ast.CallExpr, as form) *fix {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || len(call.Args) < 2 {
		return nil
	}
	if _, isFunc := underlying(c.pass.TypesInfo.TypeOf(call.Args[as.fn+1])).(*types.Signature); !isFunc &&
		!c.isFunction(c.pass.TypesInfo.TypeOf(call.Args[as.fn+1])) {
		return nil
	}
	switch as.name {
	case "Delay":
		return &fix{"Call DelayContext", []analysis.TextEdit{{
			Pos: sel.Sel.Pos(), End: sel.Sel.End(), NewText: []byte("DelayContext"),
		}}}
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
	text := f.Path + ": argument " + itoa(i+1) + ": expected " + want + ", found " + what
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
	at := as.args + i
	switch {
	case c.isContext(t) && contexts == 1 && as.name == "Delay" && i == 0:
		return &fix{"Call DelayContext", []analysis.TextEdit{
			{Pos: sel.Sel.Pos(), End: sel.Sel.End(), NewText: []byte("DelayContext")},
			{Pos: call.Args[as.fn].Pos(), End: call.Args[as.fn].Pos(), NewText: []byte(c.print(args[0]) + ", ")},
			remove(call.Args, at),
		}}
	case c.isContext(t) && contexts == 1 && i == 0 && as.name == "Call":
		return &fix{"Leave the context out", []analysis.TextEdit{remove(call.Args, at)}}
	case types.Implements(t, c.option) && as.name != "Call" && i == opts[0]:
		// One fix moves all of them, beside the first.
		var texts []string
		edits := make([]analysis.TextEdit, 0, len(opts)+1)
		for _, k := range opts {
			texts = append(texts, c.print(args[k]))
		}
		edits = append(edits, analysis.TextEdit{
			Pos: sel.X.End(), End: sel.X.End(), NewText: []byte(".With(" + strings.Join(texts, ", ") + ")"),
		})
		return &fix{"Give the options to With", append(edits, removeAll(call.Args, as.args, opts)...)}
	}
	return nil
}

// removeAll returns the edits that remove the arguments first+k for each of opts.
func removeAll(args []ast.Expr, first int, opts []int) (edits []analysis.TextEdit) {
	for at := first; at < len(args); at++ {
		if slices.Contains(opts, at-first) { // the function stands in front of it
			edits = append(edits, analysis.TextEdit{Pos: args[at-1].End(), End: args[at].End()})
		}
	}
	return edits
}

// methodExpression turns the method value m.Send into (*Mailer).Send, if the type can be named here.
func (c *checker) methodExpression(e *ast.SelectorExpr, s *types.Selection, fn *types.Func) *fix {
	recv := types.Unalias(s.Recv())
	pointed := recv
	if p, ok := recv.(*types.Pointer); ok {
		pointed = types.Unalias(p.Elem())
	} else if r := fn.Signature().Recv(); r != nil {
		if _, pointer := r.Type().(*types.Pointer); pointer {
			recv = types.NewPointer(recv) // &m is taken
		}
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
	if _, ok := recv.(*types.Pointer); ok {
		name = "(*" + name + ")"
	}
	return &fix{"Give the method expression", []analysis.TextEdit{{
		Pos: e.X.Pos(), End: e.X.End(), NewText: []byte(name),
	}}}
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
