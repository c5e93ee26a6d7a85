package delayedvet

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

// cannotKeep is said of a function and of why its result cannot be sent.
const cannotKeep = "%s: expected a result that can travel, because KeepResult is given, found: %s"

// checkDelayed checks what concerns a function that is delayed, beside its arguments.
// queue is the expression of the queue, nil if it is not part of the call.
func (c *checker) checkDelayed(call *ast.CallExpr, e, queue ast.Expr, f *function, stack []ast.Node) {
	if f.Lost != "" {
		c.reportf(call, e, "%s", f.Lost)
	}
	if f.Main && !c.inTest(call) {
		c.reportf(call, e, "%s: expected a function of a package that workers can import, found one of package main, "+
			"whose path is the same in every program; move it to a package, or wrap it with Func and Name on both "+
			"sides", f.Path)
	}
	if queue != nil {
		opts := c.optionsOf(queue)
		c.checkGrowing(call, e, f, opts)
		if keep := opts.last("KeepResult"); keep != nil && f.NoResult != "" && c.isPositive(keep) {
			c.reportf(call, e, cannotKeep, f.Path, f.NoResult)
		}
	}
	if !c.inTest(call) && !f.Unsure {
		c.delays = append(c.delays, delay{call: call, expr: e, path: f.Path, queue: c.queueOf(queue, stack)})
	}
}

// checkGrowing checks that the function of a gathered call can take the values of many calls.
func (c *checker) checkGrowing(call *ast.CallExpr, e ast.Expr, f *function, opts options) {
	if opts.last("Group") == nil {
		return
	}
	if n := len(f.Params); n == 0 || !f.Params[n-1].Grows {
		c.reportf(call, e, "%s: expected a variadic function or one whose last parameter is a slice other than "+
			"[]byte, for Group, found one that takes %s; let it take its values so, or leave Group out", f.Path,
			f.count())
	}
}

// wrapped describes what an expression is whose type is *Function or embeds it.
func (c *checker) wrapped(e ast.Expr) (*function, *fault) {
	if address, ok := e.(*ast.UnaryExpr); ok && address.Op == token.AND {
		e = ast.Unparen(address.X)
	}
	switch e := e.(type) {
	case *ast.CallExpr:
		if name := c.callee(e); name == inRoot("Func") || name == typedFunc {
			f, why := c.declaredByFunc(e)
			if why != nil {
				return &function{Faulty: true}, nil // reported there
			}
			return f, nil
		}
		if c.isNilConversion(e) {
			return nil, refusal("Function", "one made by Func", "nil", "call Func")
		}
		if id := lastName(e.Fun); id != nil && id.Name == "new" && c.pass.TypesInfo.Types[e.Fun].IsBuiltin() {
			return nil, zeroFunction()
		}
	case *ast.CompositeLit:
		if len(e.Elts) == 0 {
			return nil, zeroFunction()
		}
	case *ast.SelectorExpr:
		if e.Sel.Name == "Function" && c.isFunction(c.pass.TypesInfo.TypeOf(e.X)) {
			return c.functionOf(e.X) // what a typed function embeds
		}
		return c.importedFunction(c.pass.TypesInfo.Uses[e.Sel]), nil
	case *ast.Ident:
		return c.importedFunction(c.pass.TypesInfo.Uses[e]), nil
	}
	return nil, nil
}

func zeroFunction() *fault {
	return refusal("Function", "one made by Func", "a zero Function", "call Func")
}

// importedFunction returns the function that another package has declared with Func; nil if it is unknown.
func (c *checker) importedFunction(obj types.Object) *function {
	var fact functionFact
	if v, ok := obj.(*types.Var); ok && v.Pkg() != nil && v.Pkg() != c.pass.Pkg && c.pass.ImportObjectFact(v, &fact) {
		return &fact.Function
	}
	return nil
}

// declaredByFunc describes what a call of Func returns. It returns neither a function nor a fault if that is unknown.
func (c *checker) declaredByFunc(call *ast.CallExpr) (*function, *fault) {
	known, ok := c.functions[call]
	if !ok {
		known.f, known.why = c.readFunc(call)
		c.functions[call] = known
	}
	return known.f, known.why
}

func (c *checker) readFunc(call *ast.CallExpr) (*function, *fault) {
	if len(call.Args) == 0 {
		return nil, nil
	}
	opts := c.optionsIn(call, 1)
	inner := c.source(call.Args[0])
	t := c.pass.TypesInfo.TypeOf(inner)
	if t != nil && c.isFunction(t) {
		return nil, refusal("Func", "a function", "a *Function", "give all options in one call of Func")
	}
	name := opts.last("Name")
	var f *function
	var why *fault
	if sig, ok := underlying(t).(*types.Signature); ok && !c.isContext(t) {
		f, why = c.plain(inner, sig, name != nil || opts.unknown)
	} else {
		f, why = c.functionOf(call.Args[0])
	}
	if f == nil || why != nil {
		return nil, why
	}
	own := *f
	f = &own
	f.Unsure = opts.unknown
	if name != nil {
		path, known := c.constantText(name.Args[0])
		switch {
		case !known:
			f.Unsure = true
		case pathFault(path) != "":
			return nil, refusal(f.Path, "a path that tasks can carry", pathFault(path), "choose another Name")
		default:
			f.Path = path
		}
		f.Main = false
	}
	return f, c.applyOptions(f, opts)
}

func underlying(t types.Type) types.Type {
	if t == nil {
		return nil
	}
	return t.Underlying()
}

// applyOptions checks the options of Func and notes what they change.
func (c *checker) applyOptions(f *function, opts options) *fault {
	for _, o := range opts.all {
		switch o.name {
		case "Alias":
			for _, e := range o.made.Args {
				if path, known := c.constantText(e); known {
					if what := pathFault(path); what != "" {
						return refusal(f.Path, "aliases that tasks can carry", what, "choose another Alias")
					}
					f.Aliases = append(f.Aliases, path)
				} else {
					f.Unsure = true
				}
			}
		case "Optional":
			n, known := c.constantInt(o.made, 0)
			if known && (n < 0 || n > int64(len(f.Params))) {
				return refusal(f.Path, fmt.Sprintf("Optional of 0 to %d, as the function takes so many arguments",
					len(f.Params)), strconv.FormatInt(n, 10), "change it")
			}
		case "Unique", "UniqueKey":
			f.Unique = true
		case "KeepResult":
			if f.NoResult != "" && c.isPositive(o.made) {
				return &fault{text: fmt.Sprintf(cannotKeep, f.Path, f.NoResult)}
			}
		}
	}
	if opts.last("Backoff") != nil && opts.last("BackoffFunc") != nil {
		return refusal("Func", "Backoff or BackoffFunc", "both", "choose one")
	}
	return nil
}

// checkFunc checks a call of Func.
func (c *checker) checkFunc(call *ast.CallExpr) {
	f, why := c.declaredByFunc(call)
	if why != nil {
		c.refuse(call, call.Args[0], why)
		return
	}
	if f != nil && f.obj != nil {
		c.checkDanger(call, call.Args[0], f.obj)
	}
}

// checkPath checks the path of a task that is given by path.
func (c *checker) checkPath(call *ast.CallExpr, python bool) {
	if len(call.Args) == 0 {
		return
	}
	path, known := c.constantText(call.Args[0])
	if !known {
		return
	}
	what := pathFault(path)
	switch module, name, ok := strings.Cut(path, ":"); {
	case python && path != "" && (!ok || module == "" || name == "" || strings.Contains(name, ":")):
		what = "Python path " + strconv.Quote(path) + `, expected "module:function"`
	case python && path != "":
		what = ""
	}
	if what != "" {
		do := "give an import path, a dot and a name, as in example.com/app/mail.Welcome"
		if python {
			do = "give a module, a colon and a name, as in mail.tasks:welcome"
		}
		c.reportf(call, call.Args[0], "expected a path that tasks can carry, found %s; %s", what, do)
	}
}
