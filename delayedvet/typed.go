package delayedvet

import (
	"go/ast"
	"go/types"
	"strings"
)

// typedFunc stands for all functions that make typed functions.
const typedFunc = root + "/typed.Func"

// ofTyped returns the name of a method of all types of package typed.
func ofTyped(name string) string { return "(" + root + "/typed.Function)." + name }

// withoutArity returns the full name of a function; for those of package typed, one for all numbers of arguments.
func withoutArity(fn *types.Func) string {
	if fn.Pkg() == nil || fn.Pkg().Path() != root+"/typed" {
		return fn.FullName()
	}
	if recv := fn.Signature().Recv(); recv != nil {
		if name := nameOf(recv.Type()); name != nil && withoutDigit(name.Name()) == "Function" {
			return ofTyped(fn.Name())
		}
	} else if made := withoutDigit(fn.Name()); made == "Func" || made == "ResultFunc" {
		return typedFunc
	}
	return fn.FullName()
}

// withoutDigit returns a name without the digit at its end; "" if there is none.
func withoutDigit(name string) string {
	if short := strings.TrimRight(name, "01234"); len(short) == len(name)-1 {
		return short
	}
	return ""
}

// isFunction reports whether t is *Function or a type that embeds it, as those of typed functions do.
func (c *checker) isFunction(t types.Type) bool {
	if t == nil {
		return false
	}
	if c.isPointerTo(t, inRoot("Function")) {
		return true
	}
	obj, _, _ := types.LookupFieldOrMethod(t, false, nil, "Function")
	field, ok := obj.(*types.Var)
	return ok && field.Embedded() && c.isPointerTo(field.Type(), inRoot("Function"))
}

// checkTyped checks a call of a typed function. The compiler has checked its arguments, except units and what a
// parameter of type any takes.
func (c *checker) checkTyped(call *ast.CallExpr, as form, stack []ast.Node) {
	e := receiver(call)
	if e == nil || len(call.Args) < as.args {
		return // f(g()) with several results of g
	}
	f, why := c.functionOf(e)
	if why != nil {
		c.refuse(call, e, why)
		return
	}
	if f == nil || f.Faulty {
		return
	}
	c.checkDelayed(call, e, queueIn(call, as), f, stack)
	args := call.Args[as.args:]
	if len(args) != len(f.Params) {
		return
	}
	for i, arg := range args {
		if f.Params[i].Full == "time.Duration" && c.isBare(arg) && isShort(c.argumentOf(arg).value) {
			c.reportf(call, arg, "%s: argument %d: expected time.Duration, found %s, which counts nanoseconds; put a "+
				"unit such as time.Second behind the number", f.Path, i+1, c.print(arg))
		}
	}
	c.checkArguments(call, f, as, args)
}

// isBare reports whether a constant is made of numbers without a type, which the compiler takes for nanoseconds.
func (c *checker) isBare(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.BasicLit:
		return true
	case *ast.BinaryExpr:
		return c.isBare(e.X) && c.isBare(e.Y)
	}
	obj, ok := c.pass.TypesInfo.Uses[lastName(e)].(*types.Const)
	if !ok {
		return false
	}
	basic, ok := obj.Type().(*types.Basic)
	return ok && basic.Info()&types.IsUntyped != 0
}
