package delayedvet

import (
	"go/ast"
	"go/types"
	"slices"
)

// functionFact publishes to other packages which function a variable of this one holds.
type functionFact struct{ Function function }

// AFact marks a fact of package analysis.
func (*functionFact) AFact() {}

// programFact holds what a package contributes to the workers of programs that import it.
type programFact struct {
	Worker    bool     // it makes workers
	Registers []string // the paths of functions that it registers
	Unknown   bool     // it registers others, too
}

// AFact marks a fact of package analysis.
func (*programFact) AFact() {}

// delay is a function that the package delays.
type delay struct {
	call  *ast.CallExpr
	expr  ast.Expr
	path  string
	queue string // "" if it is unknown
}

// queueNames are the queues of the workers of a package.
type queueNames struct {
	names   []string
	unknown bool // there may be others
}

// noteCall notes calls that make or configure workers.
func (c *checker) noteCall(call *ast.CallExpr, name string) {
	if c.inTest(call) {
		return // a worker of a test is none of the program
	}
	switch name {
	case inRoot("NewWorker"):
		c.program.Worker = true
		if len(call.Args) == 2 {
			if _, ok := c.source(call.Args[1]).(*ast.CompositeLit); !ok { // else noteQueues sees it
				c.serves.unknown = true
			}
		}
	case inMain("Main"), inMain("Run"):
		c.program.Worker, c.serves.unknown = true, true // flags name the queues
		if name == inMain("Run") && len(call.Args) == 1 {
			if _, ok := c.source(call.Args[0]).(*ast.CompositeLit); !ok {
				c.program.Unknown = true
			}
		}
	}
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && sel.Sel.Name == "Register" && name != "" {
		if s := c.pass.TypesInfo.Selections[sel]; s != nil && types.IsInterface(s.Recv()) {
			c.program.Unknown = true // a worker may stand behind the interface
		}
	}
}

// noteValue notes that Register is used as a value, so that nobody knows what it is called with.
func (c *checker) noteValue(sel *ast.SelectorExpr, stack []ast.Node) {
	fn, ok := c.pass.TypesInfo.Uses[sel.Sel].(*types.Func)
	if !ok || fn.FullName() != ofWorker("Register") && fn.FullName() != ofWorker("RegisterMethods") {
		return
	}
	if call, ok := parent(stack).(*ast.CallExpr); !ok || ast.Unparen(call.Fun) != sel || c.callee(call) == "" {
		c.program.Unknown = true
	}
}

// noteQueues notes the queues in the configuration of a worker.
func (c *checker) noteQueues(lit *ast.CompositeLit) {
	if c.inTest(lit) {
		return
	}
	var list *ast.CompositeLit
	if value := fieldOf(lit, "Queues"); value != nil {
		list, _ = c.source(value).(*ast.CompositeLit)
	}
	if list == nil {
		c.serves.unknown = true
		return
	}
	for _, e := range list.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			e = kv.Key // of Weighted
		}
		if name, known := c.constantText(e); known {
			c.serves.names = append(c.serves.names, name)
		} else {
			c.serves.unknown = true
		}
	}
}

// queueOf returns the name of the queue that a call delays to; "" if it is unknown. The queue is nil if it is not part
// of the call.
func (c *checker) queueOf(queue ast.Expr, stack []ast.Node) string {
	if queue != nil {
		return c.queueName(queue)
	}
	for _, n := range slices.Backward(stack) { // what the call is part of
		switch n := n.(type) {
		case *ast.CallExpr:
			if name := c.callee(n); name == ofQueue("DelayMany") || name == ofQueue("Enqueue") {
				return c.queueName(receiver(n))
			}
		case *ast.CompositeLit:
			if c.typeName(c.pass.TypesInfo.TypeOf(n)) == inRoot("SchedulerConfig") {
				if value := fieldOf(n, "Queue"); value != nil {
					name, _ := c.constantText(value)
					return name
				}
			}
		}
	}
	return ""
}

// receiver returns the expression of which a method is called; nil if there is none.
func receiver(call *ast.CallExpr) ast.Expr {
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		return sel.X
	}
	return nil
}

// queueIn returns the expression of the queue of a call; nil if it is not part of the call.
func queueIn(call *ast.CallExpr, as form) ast.Expr {
	switch {
	case as.name == "Call":
		return nil
	case as.typed:
		return call.Args[as.fn]
	}
	return receiver(call)
}

// queueName returns the name of a queue; "" if it is unknown.
func (c *checker) queueName(queue ast.Expr) string {
	switch made, name := c.madeBy(queue); name {
	case ofQueue("With"):
		return c.queueName(receiver(made))
	case inRoot("NewQueue"), inRoot("OpenQueue"):
		text, _ := c.constantText(made.Args[0])
		return text
	}
	return ""
}

// exportFunctions publishes to other packages what the exported variables hold that Func has made.
func (c *checker) exportFunctions() {
	scope := c.pass.Pkg.Scope()
	for _, name := range scope.Names() {
		v, ok := scope.Lookup(name).(*types.Var)
		if !ok || !v.Exported() || !c.isFunction(v.Type()) {
			continue
		}
		value, ok := c.vars[v]
		if !ok {
			continue
		}
		if f, why := c.wrapped(c.source(value)); f != nil && why == nil {
			fact := &functionFact{*f}
			fact.Function.obj = nil
			c.pass.ExportObjectFact(v, fact)
		}
	}
}

// exportProgram publishes to programs that import this package what it registers. Without a fact, command delayedvet
// would take the package for one that does not use package delayed: see skip there.
func (c *checker) exportProgram() {
	p := c.program
	switch c.pass.Pkg.Path() {
	case root + "/workermain", root + "/delayedtest": // register what their callers give them
		p = programFact{}
	}
	c.pass.ExportPackageFact(&p)
}

// checkProgram reports functions that a program delays and its own worker does not know.
func (c *checker) checkProgram() {
	if c.pass.Pkg.Name() != "main" {
		return
	}
	p := c.program
	for _, fact := range c.pass.AllPackageFacts() {
		if f, ok := fact.Fact.(*programFact); ok {
			p.Worker, p.Unknown = p.Worker || f.Worker, p.Unknown || f.Unknown
			p.Registers = append(p.Registers, f.Registers...)
		}
	}
	if !p.Worker || p.Unknown {
		return
	}
	for _, d := range c.delays {
		if slices.Contains(p.Registers, d.path) || c.servedElsewhere(d.queue) {
			continue
		}
		c.reportf(d.call, d.expr, "%s: expected the worker of this program to have it registered, found it delayed "+
			"only; give it to Register, or to the worker of another program that serves the queue and say so with "+
			"//delayed:allow", d.path)
	}
}

// servedElsewhere reports whether no worker of this program serves a queue.
func (c *checker) servedElsewhere(queue string) bool {
	return queue != "" && !c.serves.unknown && len(c.serves.names) > 0 && !slices.Contains(c.serves.names, queue)
}
