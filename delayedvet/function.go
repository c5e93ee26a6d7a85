package delayedvet

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"strings"
)

// function is what is known of a function that is delayed or registered. Facts carry it to other packages.
type function struct {
	Path     string // import path, a dot, and the name; or that of Name
	Aliases  []string
	Params   []parameter // those that are sent: without receiver and context
	Elem     parameter   // of the last one, if Variadic
	Variadic bool
	Main     bool   // named after package main
	Method   bool   // method expression, which workers register by its receiver
	Unique   bool   // Func has given it a lock
	NoResult string // why its result cannot be kept; "" if it can
	Keeps    bool   // Func has given it KeepResult
	Lost     string // what of its arguments is lost without an error
	Faulty   bool   // something is wrong with it that was reported where it is declared
	Unsure   bool   // it may have another path, or further aliases

	obj *types.Func // of a function that was not wrapped
}

// declaration is what a call of Func has made: a function, a fault, or nothing that is known.
type declaration struct {
	f   *function
	why *fault
}

// fault is why an expression is no function that can be delayed or registered.
type fault struct {
	text string
	fix  *fix
}

func refusal(subject, want, got, do string) *fault {
	const format = "function cannot be delayed: %s: expected %s, found %s; %s"
	return &fault{text: fmt.Sprintf(format, subject, want, got, do)}
}

const (
	anyKind = "a function declared at package level or a method expression"
	wrapIt  = "wrap it with Func and Name on both sides"
)

// functionOf finds out which function an expression stands for. It returns neither a function nor a fault if it cannot
// be known.
func (c *checker) functionOf(e ast.Expr) (*function, *fault) {
	value := c.source(e)
	tv := c.pass.TypesInfo.Types[value]
	switch {
	case tv.IsNil():
		return nil, refusal("nil", "a function", "nil", "give a function declared at package level")
	case tv.Type == nil:
		return nil, nil
	case c.isContext(tv.Type):
		return nil, refusal("context", "a function", "a context.Context", "call DelayContext(ctx, fn, ...)")
	case c.isFunction(tv.Type):
		return c.wrapped(value)
	}
	switch t := tv.Type.Underlying().(type) {
	case *types.Interface, *types.Tuple: // also a type parameter; several results, the first of which is the function
		return nil, nil
	case *types.Signature:
		return c.plain(value, t, false)
	default:
		if tv.Value != nil && tv.Value.Kind() == constant.String {
			return nil, refusal(tv.Value.ExactString(), "a function", "a string",
				"give the function itself; NewGoTask makes a task of a path alone")
		}
		do := "give a function declared at package level, a method expression or a *Function"
		return nil, refusal("value", "a function", "a value of type "+c.text(tv.Type), do)
	}
}

// plain describes a func value that Func has not wrapped, or wraps under a Name.
func (c *checker) plain(e ast.Expr, sig *types.Signature, named bool) (*function, *fault) {
	switch e := e.(type) {
	case *ast.FuncLit:
		if !named {
			return nil, refusal("function literal", anyKind, "a function literal", wrapIt)
		}
		return c.described(&function{Path: "function literal"}, sig)
	case *ast.IndexExpr:
		return c.declared(lastName(e.X), sig, named)
	case *ast.IndexListExpr:
		return c.declared(lastName(e.X), sig, named)
	case *ast.CallExpr: // a conversion such as Handler(f)
		if c.isNilConversion(e) {
			return nil, refusal("nil", "a function", "a nil "+c.text(c.pass.TypesInfo.TypeOf(e)),
				"give a function declared at package level")
		}
		if c.pass.TypesInfo.Types[e.Fun].IsType() && len(e.Args) == 1 {
			inner := c.source(e.Args[0])
			if t := c.pass.TypesInfo.TypeOf(inner); t != nil && types.Identical(t.Underlying(), sig) {
				return c.plain(inner, sig, named)
			}
		}
	case *ast.Ident:
		return c.declared(e, sig, named)
	case *ast.SelectorExpr:
		if s := c.pass.TypesInfo.Selections[e]; s != nil {
			return c.method(e, s, sig, named)
		}
		return c.declared(e.Sel, sig, named)
	}
	return nil, nil
}

// isNilConversion reports whether e is a nil of a type that is written out, such as (*T)(nil).
func (c *checker) isNilConversion(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	return ok && len(call.Args) == 1 && c.pass.TypesInfo.Types[call.Fun].IsType() &&
		c.pass.TypesInfo.Types[ast.Unparen(call.Args[0])].IsNil()
}

// declared describes a function of a package, which id names; nothing is known of variables and of nil.
func (c *checker) declared(id *ast.Ident, sig *types.Signature, named bool) (*function, *fault) {
	fn, ok := c.pass.TypesInfo.Uses[id].(*types.Func)
	if !ok || fn.Pkg() == nil {
		return nil, nil
	}
	f := &function{Path: pathOf(fn.Pkg()) + "." + fn.Name(), Main: fn.Pkg().Name() == "main", obj: fn}
	if _, instance := c.pass.TypesInfo.Instances[id]; instance && !named {
		return nil, refusal(f.Path, anyKind,
			"an instance of a generic function, whose path may mean another one elsewhere", wrapIt)
	}
	return c.described(f, sig)
}

// method describes a method value or a method expression.
func (c *checker) method(
	e *ast.SelectorExpr, s *types.Selection, sig *types.Signature, named bool,
) (*function, *fault) {
	fn, ok := s.Obj().(*types.Func)
	if !ok {
		return nil, nil // a field that holds a function
	}
	recv := s.Recv()
	path := c.methodPath(recv, fn)
	f := &function{Path: path, obj: fn}
	if s.Kind() == types.MethodVal {
		if named {
			return c.described(f, sig)
		}
		x := refusal(path, anyKind, "a method value, whose path may mean another one elsewhere",
			"give the method expression, whose receiver the worker has, or "+wrapIt)
		x.fix = c.methodExpression(e, s, fn)
		return nil, x
	}
	f.Method = true
	pointed, _ := pointedBy(recv)
	owner, _ := pointed.(*types.Named)
	switch {
	case types.IsInterface(recv):
		return nil, refusal(path, anyKind, "a method expression on an interface",
			"give the method of the type that implements it")
	case named:
	case owner == nil || owner.Obj().Pkg() == nil || owner.Obj().Parent() != owner.Obj().Pkg().Scope():
		return nil, refusal(path, anyKind, "a method expression on a type that has no name outside its function, "+
			"whose path may mean another one elsewhere", wrapIt)
	case owner.TypeArgs().Len() > 0:
		return nil, refusal(path, anyKind, "a method expression on an instance of a generic type, whose path may mean "+
			"another one elsewhere", wrapIt)
	case !fn.Exported():
		return nil, refusal(path, "an exported method", "method "+fn.Name(),
			"export it, because RegisterMethods binds no others, or "+wrapIt)
	}
	if owner != nil && owner.Obj().Pkg() != nil {
		f.Main = owner.Obj().Pkg().Name() == "main"
	}
	return c.described(f, sig)
}

// methodPath returns the path of a method expression.
func (c *checker) methodPath(recv types.Type, fn *types.Func) string {
	pointed, pointer := pointedBy(recv)
	owner := nameOf(pointed)
	if owner == nil {
		return c.text(recv) + "." + fn.Name()
	}
	name := owner.Name()
	if pointer {
		name = "(*" + name + ")"
	}
	return pathOf(owner.Pkg()) + "." + name + "." + fn.Name()
}

// pathOf returns the import path as the runtime prints it.
func pathOf(pkg *types.Package) string {
	if pkg.Name() == "main" {
		return "main"
	}
	path := pkg.Path()
	if i := strings.LastIndex(path, "/vendor/"); i >= 0 {
		path = path[i+len("/vendor/"):]
	}
	return path
}

// described reads the signature of a function, as workers and producers do.
func (c *checker) described(f *function, sig *types.Signature) (*function, *fault) {
	var in []types.Type
	for v := range sig.Params().Variables() {
		in = append(in, v.Type())
	}
	if f.Method && len(in) > 0 {
		in = in[1:]
	}
	if len(in) > 0 && c.typeName(in[0]) == "context.Context" {
		in = in[1:]
	}
	f.Variadic = sig.Variadic() && len(in) > 0
	size := int64(0)
	for i, t := range in {
		if c.isContext(t) {
			return nil, refusal(f.Path, "a context as the first parameter or none", c.text(t), "move it to the front")
		}
		part := t
		what := fmt.Sprintf("found parameter %d", i+1)
		if f.Variadic && i == len(in)-1 {
			part, what = t.(*types.Slice).Elem(), "found the variadic one" //nolint:errcheck // a variadic parameter
			f.Elem = c.parameterOf(part)
		}
		why, lost := c.travels(part)
		if why != "" {
			const format = "function cannot be delayed: %s: expected parameters that can travel, %s: %s"
			return nil, &fault{text: fmt.Sprintf(format, f.Path, what, why)}
		}
		f.Params = append(f.Params, c.parameterOf(t))
		if lost != "" && f.Lost == "" {
			f.Lost = fmt.Sprintf("%s: expected parameters that travel whole, %s: %s", f.Path, what, lost)
		}
		if size += c.sizeOf(t); size > maxInline {
			return nil, refusal(f.Path, fmt.Sprintf("parameters of at most %d bytes together by value", maxInline),
				fmt.Sprintf("%s of %d bytes", c.text(t), c.sizeOf(t)), "take a pointer or a slice")
		}
	}
	return f, c.describeResults(f, sig.Results())
}

// maxInline bounds the size of a function's parameters in memory, in bytes.
const maxInline = 16 << 10

func (c *checker) sizeOf(t types.Type) (n int64) {
	if hasTypeParam(t) || c.pass.TypesSizes == nil {
		return 0
	}
	return c.pass.TypesSizes.Sizeof(t)
}

var errorType = types.Universe.Lookup("error").Type()

func (c *checker) describeResults(f *function, out *types.Tuple) *fault {
	n := out.Len()
	if n > 0 && types.Identical(out.At(n-1).Type(), errorType) {
		n--
	}
	const accepted = "no result, error, T or (T, error)"
	if n > 1 {
		return refusal(f.Path, accepted, c.text(out), "return one value, a struct for instance")
	}
	if n == 1 {
		t := out.At(0).Type()
		if i, ok := errorType.Underlying().(*types.Interface); ok && types.Implements(t, i) {
			return refusal(f.Path, accepted, c.text(out), "return error itself")
		}
		f.NoResult, _ = c.travels(t)
	}
	return nil
}

// text shows a type with the names of packages, as errors at run time do.
func (c *checker) text(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string { return p.Name() })
}
