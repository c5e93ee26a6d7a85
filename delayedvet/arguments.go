package delayedvet

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// checkCall checks a call that takes a function and its arguments.
func (c *checker) checkCall(call *ast.CallExpr, as form, stack []ast.Node) {
	if len(call.Args) <= as.fn {
		return
	}
	e := call.Args[as.fn]
	if as.test && c.isPointerTo(c.pass.TypesInfo.TypeOf(e), inRoot("Task")) {
		if len(call.Args) > as.args {
			c.reportf(call, call.Args[as.args], "a *Task has its arguments: expected none beside it, found %d; "+
				"leave them out", len(call.Args)-as.args)
		}
		return
	}
	f, why := c.functionOf(e)
	if why != nil {
		if c.isContext(c.pass.TypesInfo.TypeOf(e)) {
			why.fix = c.contextFirst(call, as)
		}
		c.refuse(call, e, why)
		return
	}
	if f == nil || f.Faulty {
		return
	}
	if !as.test {
		c.checkDelayed(call, e, queueIn(call, as), f, stack)
	}
	if call.Ellipsis.IsValid() {
		if lit, ok := ast.Unparen(call.Args[len(call.Args)-1]).(*ast.CompositeLit); !ok || len(lit.Elts) == 0 {
			return
		}
	}
	args, known := c.arguments(call, as.args)
	if !known {
		return
	}
	c.checkArguments(call, f, as, args)
}

// checkArguments checks arguments against the parameters of a function.
func (c *checker) checkArguments(call *ast.CallExpr, f *function, as form, exprs []ast.Expr) {
	args := make([]argument, len(exprs))
	misplaced, wild := false, 0
	for i, e := range exprs {
		args[i] = c.argumentOf(e)
		switch name := c.wildcard(e, as); {
		case name == "AnyArgs" && len(exprs) == 1:
			return
		case name == "AnyArgs":
			c.reportf(call, e, "AnyArgs stands for all arguments of a call: expected it alone, found %d arguments; "+
				"leave out the others, or give Any for each", len(exprs))
			return
		case name == "Any":
			wild++
		}
		if what := c.refused(args[i]); what != "" {
			misplaced = true
			c.misplacedArgument(call, f, as, exprs, i, what)
		}
	}
	if misplaced {
		return
	}
	fixed := len(f.Params)
	if f.Variadic {
		fixed--
	}
	if len(args) < fixed || len(args) > fixed && !f.Variadic {
		c.reportf(call, call.Args[as.fn], "%s: expected %s, found %d; give as many as the function takes", f.Path,
			f.count(), len(args))
		return
	}
	for i, a := range args[:fixed] {
		if c.wildcard(a.expr, as) == "" {
			c.checkArgument(call, f.argument(i), f.Params[i], a)
		}
	}
	if !f.Variadic {
		return
	}
	tail := args[fixed:]
	if last := f.Params[fixed]; len(tail) == 1 && tail[0].typ != nil && !f.Elem.fits(tail[0]) &&
		(tail[0].as.Full == last.Full || tail[0].as.Under == last.Under && (!tail[0].as.Named || !last.Named)) {
		return // the whole tail as a slice
	}
	for i, a := range tail {
		if c.wildcard(a.expr, as) == "" {
			c.checkArgument(call, f.argument(fixed+i), f.Elem, a)
		}
	}
}

// argument names an argument in errors.
func (f *function) argument(i int) string { return fmt.Sprintf("%s: argument %d", f.Path, i+1) }

// checkArgument checks one argument, which errors call subject, against its parameter.
func (c *checker) checkArgument(call *ast.CallExpr, subject string, p parameter, a argument) {
	if !p.fits(a) {
		c.reportf(call, a.expr, "%s: expected %s, found %s; %s", subject, p.Type, a.found(), p.advice(a))
		return
	}
	if a.value != nil && a.value.Kind() == constant.String && !utf8.ValidString(constant.StringVal(a.value)) {
		c.reportf(call, a.expr, "%s: expected %s in UTF-8, found string of %d bytes that is not UTF-8; send it as "+
			"[]byte", subject, p.Type, len(constant.StringVal(a.value)))
		return
	}
	if p.Kind == kindAny && a.typ != nil && !types.IsInterface(a.typ) && !a.as.Opaque {
		why, lost := c.travels(a.typ)
		if why != "" {
			c.reportf(call, a.expr, "%s: expected a value that can travel, found another: %s", subject, why)
			return
		}
		if lost != "" {
			c.reportf(call, a.expr, "%s: expected a value that travels whole: %s", subject, lost)
			return
		}
	}
	c.checkUnit(call, subject, p, a)
}

// advice returns what to do about an argument that does not fit.
func (p parameter) advice(a argument) string {
	switch {
	case a.typ == nil:
		return "give a value, because " + p.Type + " has no nil"
	case a.as.isInteger() && p.isInteger():
		return "give a number that it can hold, or let the function take a wider type"
	case a.as.isInteger() && p.Kind == kindFloat:
		return "give a number that it holds exactly, or convert it where the loss can be seen"
	case p.Kind == reflect.Pointer && "*"+a.as.Full == p.Full:
		return "give its address"
	case a.as.Kind == reflect.Pointer && "*"+p.Full == a.as.Full:
		return "give what it points to"
	default:
		return "convert it, or change the parameter"
	}
}

// count returns how many arguments the function takes, as errors at run time do.
func (f *function) count() string {
	n := len(f.Params)
	names := make([]string, n)
	for i, p := range f.Params {
		names[i] = p.Type
	}
	want := strconv.Itoa(n) + " arguments"
	switch {
	case f.Variadic:
		n--
		names[n] = "..." + f.Elem.Type
		want = fmt.Sprintf("at least %d arguments", n)
	case n == 0:
		return "no arguments"
	}
	if n == 1 {
		want = strings.TrimSuffix(want, "s")
	}
	return want + " (" + strings.Join(names, ", ") + ")"
}

// wildcard returns the name of the wildcard of an expectation that e is; "" if it is none.
func (c *checker) wildcard(e ast.Expr, as form) string {
	if !as.test {
		return ""
	}
	obj, ok := c.pass.TypesInfo.Uses[lastName(e)].(*types.Const)
	if !ok || obj.Pkg() == nil || obj.Pkg().Path() != root+"/delayedtest" {
		return ""
	}
	return obj.Name()
}

// checkUnknown checks the arguments of a task that is given by path.
func (c *checker) checkUnknown(call *ast.CallExpr, first int) {
	args, known := c.arguments(call, first)
	if !known || call.Ellipsis.IsValid() {
		return
	}
	for i, e := range args {
		c.checkSent(call, i, e)
	}
}

// checkPython checks the arguments of a Python task, if they are written out.
func (c *checker) checkPython(call *ast.CallExpr) {
	if len(call.Args) != 3 {
		return
	}
	for _, list := range call.Args[1:] {
		if lit, ok := ast.Unparen(list).(*ast.CompositeLit); ok {
			elems, _ := c.elements(lit)
			for i, e := range elems {
				c.checkSent(call, i, e)
			}
		}
	}
}

// checkSent checks an argument whose parameter is unknown.
func (c *checker) checkSent(call *ast.CallExpr, i int, e ast.Expr) {
	a := c.argumentOf(e)
	if what := c.refused(a); what != "" {
		c.reportf(call, e, "argument %d: expected a value, found %s", i+1, strings.Replace(what,
			"call DelayContext(ctx, fn, ...)", "pass it to Enqueue(ctx, task)", 1))
		return
	}
	c.checkArgument(call, fmt.Sprintf("argument %d", i+1), parameter{Type: "a string", Kind: kindAny}, a)
}
