package delayedvet

import (
	"go/ast"
	"go/types"
	"strconv"
)

// checkRegistered checks functions that a call registers, for a worker of the program or for one of delayedtest, which
// takes receivers as well.
func (c *checker) checkRegistered(call *ast.CallExpr, args []ast.Expr, worker bool) {
	if last := len(args) - 1; call.Ellipsis.IsValid() {
		c.checkListed(call, args[:last:last], args[last], worker)
		return
	}
	c.checkFunctions(call, args, worker)
}

// checkListed checks functions that are registered together, the last of them in a list; nil if there is none.
func (c *checker) checkListed(at ast.Node, exprs []ast.Expr, list ast.Expr, worker bool) {
	if list == nil {
		return
	}
	elems, known := c.elements(list)
	if worker && !known {
		c.program.Unknown = true
	}
	c.checkFunctions(at, append(exprs, elems...), worker)
}

// checkFunctions checks functions that are registered together, in a call or in a literal.
func (c *checker) checkFunctions(at ast.Node, exprs []ast.Expr, worker bool) {
	known := map[string]bool{}
	for _, e := range exprs {
		if !worker && c.isReceiver(e) {
			continue
		}
		f, why := c.functionOf(e)
		if why != nil {
			why.fix = nil
			c.refuse(at, e, why)
			continue
		}
		if worker && (f == nil || f.Unsure) {
			c.program.Unknown = true
		}
		if f == nil || f.Faulty {
			continue
		}
		if worker {
			c.program.Registers = append(append(c.program.Registers, f.Path), f.Aliases...)
			if f.Lost != "" {
				c.reportf(at, e, "%s", f.Lost)
			}
		}
		if f.Method {
			c.refuse(at, e, refusal(f.Path, "a function", "a method expression, whose receiver is missing",
				"give the receiver to RegisterMethods, or register its method value wrapped with Func and the same "+
					"Name"))
			continue
		}
		if known[f.Path] && !f.Unsure {
			c.refuse(at, e, refusal(f.Path, "a path of its own", "one that is taken already",
				"register it once, or give one of them a Name"))
		}
		known[f.Path] = true
		if worker && f.obj != nil && !c.isFunction(c.pass.TypesInfo.TypeOf(e)) { // else reported at Func
			c.checkDanger(at, e, f.obj)
		}
	}
}

// isReceiver reports whether delayedtest takes e for a receiver, whose methods are called.
func (c *checker) isReceiver(e ast.Expr) bool {
	t := c.pass.TypesInfo.TypeOf(c.source(e))
	if t == nil || c.pass.TypesInfo.Types[c.source(e)].IsNil() || c.isFunction(t) {
		return false
	}
	_, isFunc := t.Underlying().(*types.Signature)
	return !isFunc
}

// checkReceiver checks a call of RegisterMethods.
func (c *checker) checkReceiver(call *ast.CallExpr) {
	if len(call.Args) != 1 {
		return
	}
	e := c.source(call.Args[0])
	t := c.pass.TypesInfo.TypeOf(e)
	found := ""
	switch {
	case c.pass.TypesInfo.Types[e].IsNil():
		found = "nil"
	case t == nil || types.IsInterface(t):
		c.program.Unknown = true
		return
	case c.isNilConversion(e):
		found = "a nil " + c.text(t)
	}
	if found != "" {
		c.refuse(call, call.Args[0], refusal("receiver", "a value with methods", found,
			"give the receiver that tasks shall run with"))
		return
	}
	elem, _ := pointedBy(t)
	good, all := 0, 0
	for m := range types.NewMethodSet(t).Methods() {
		fn, ok := m.Obj().(*types.Func)
		if !ok || !fn.Exported() {
			continue
		}
		all++
		if _, why := c.described(&function{Path: c.methodPath(t, fn)}, fn.Signature()); why != nil {
			continue
		}
		good++
		c.program.Registers = append(c.program.Registers, c.methodPath(elem, fn),
			c.methodPath(types.NewPointer(elem), fn))
	}
	if good == 0 && !hasTypeParam(t) {
		do := "export one, or give a pointer if the methods have pointer receivers"
		c.refuse(call, call.Args[0], refusal(c.text(t), "an exported method with an accepted signature",
			"none among "+strconv.Itoa(all), do))
		return
	}
	if name := nameOf(elem); name != nil {
		c.checkDanger(call, call.Args[0], name)
	}
}
