// Package delayedvet checks calls of package delayed when programs are built, as go vet does: the compiler cannot,
// because Delay takes any function with any arguments.
//
// Analyzer and Renamed are for programs that run analyzers; cmd/delayedvet runs them alone or under go vet, and package
// plugin makes them a linter of golangci-lint. README.md lists what they find.
//
// It reports what would be refused when the program runs, in the words of the errors there, and what would be accepted
// and lost. What cannot be known from the source, such as the function in a variable that is set twice, it leaves to
// the program.
package delayedvet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"
)

// doc is what go vet prints as help.
const doc = `check calls of functions that are delayed

Package github.com/godelayed/delayed takes functions and their arguments as values of type any. This analyzer checks
them as the compiler checks a direct call: Queue.Delay, DelayContext, Call, periodic entries, and the expectations of
package delayedtest, against the signature of the function.

It also reports functions that have no path of their own or types that cannot travel in a task, options and contexts
among the arguments, errors of Delay that nobody reads, durations that lose their unit, functions that a program delays
but its worker does not register, functions of package main, and registrations that let tasks run commands.

The comment //delayed:allow and a reason, on the line or on the line before, silences one finding.`

// Analyzer checks calls of package delayed. It is safe for concurrent use.
var Analyzer = &analysis.Analyzer{
	Name:      "delayedvet",
	Doc:       doc,
	URL:       "https://pkg.go.dev/github.com/godelayed/delayed/delayedvet",
	Requires:  []*analysis.Analyzer{inspect.Analyzer},
	FactTypes: []analysis.Fact{new(functionFact), new(programFact)},
	Run:       run,
}

// checker checks one package.
type checker struct {
	pass      *analysis.Pass
	ctx       *types.Interface // context.Context
	option    *types.Interface // delayed.Option
	funcOpt   *types.Interface // delayed.FuncOption
	vars      variables
	program   programFact
	delays    []delay
	serves    queueNames
	found     []finding
	functions map[*ast.CallExpr]declaration // by calls of delayed.Func, to which several others may refer
}

// root is the import path of the package whose calls are checked.
const root = "github.com/godelayed/delayed"

func run(pass *analysis.Pass) (any, error) {
	lib := imported(pass.Pkg, root)
	if lib == nil {
		return nil, nil
	}
	c := &checker{pass: pass, functions: map[*ast.CallExpr]declaration{}}
	c.option, c.funcOpt = interfaceIn(lib, "Option"), interfaceIn(lib, "FuncOption")
	c.ctx = interfaceIn(imported(lib, "context"), "Context")
	// The tests of package delayed misuse it on purpose.
	ours := lib == pass.Pkg || pass.Pkg.Path() == root+"_test"
	if ours || c.option == nil || c.funcOpt == nil || c.ctx == nil {
		pass.ExportPackageFact(&programFact{})
		return nil, nil
	}
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector) //nolint:errcheck // by contract
	c.vars = variablesOf(pass, in)
	in.WithStack(visited, func(n ast.Node, push bool, stack []ast.Node) bool {
		if push {
			c.visit(n, stack)
		}
		return true
	})
	c.exportFunctions()
	c.exportProgram()
	c.checkProgram()
	c.report()
	return nil, nil
}

var visited = []ast.Node{
	(*ast.CallExpr)(nil), (*ast.CompositeLit)(nil), (*ast.AssignStmt)(nil), (*ast.SelectorExpr)(nil),
}

// visit checks one node. stack ends with it.
func (c *checker) visit(n ast.Node, stack []ast.Node) {
	switch n := n.(type) {
	case *ast.CallExpr:
		c.visitCall(n, stack)
	case *ast.CompositeLit:
		c.visitLiteral(n)
	case *ast.AssignStmt:
		c.checkBlank(n)
	case *ast.SelectorExpr:
		c.noteValue(n, stack)
	}
}

func (c *checker) visitCall(call *ast.CallExpr, stack []ast.Node) {
	name := c.callee(call)
	c.noteCall(call, name)
	c.checkIgnored(call, name, stack)
	switch name {
	case inRoot("Func"), typedFunc:
		c.checkFunc(call)
	case inRoot("NewGoTask"):
		c.checkPath(call, false)
		c.checkUnknown(call, 1)
	case inRoot("NewPyTask"):
		c.checkPath(call, true)
		c.checkPython(call)
	case ofQueue("With"):
		c.checkWith(call)
	case ofWorker("Register"):
		c.checkRegistered(call, call.Args, true)
	case ofWorker("RegisterMethods"):
		c.checkReceiver(call)
	case inMain("Main"):
		c.checkRegistered(call, call.Args, true)
	case inTest("Drain"), inTest("Inline"), inTest("Tasks"):
		if len(call.Args) > 2 {
			c.checkRegistered(call, call.Args[2:], false)
		}
	default:
		switch as, ok := calls[name]; {
		case as.typed:
			c.checkTyped(call, as, stack)
		case ok:
			c.checkCall(call, as, stack)
		default:
			c.checkDurations(call, name)
		}
	}
}

func (c *checker) visitLiteral(lit *ast.CompositeLit) {
	switch c.typeName(c.pass.TypesInfo.TypeOf(lit)) {
	case inRoot("Entry"):
		c.checkEntry(lit)
	case inRoot("WorkerConfig"):
		c.noteQueues(lit)
	case inMain("Config"):
		c.checkListed(lit, nil, fieldOf(lit, "Functions"), true)
	case inTest("RunConfig"):
		c.checkListed(lit, nil, fieldOf(lit, "Funcs"), false)
	}
}

// callee returns the full name of the function or method that is called; "" if it is unknown. Typed functions of all
// arities have one name.
func (c *checker) callee(call *ast.CallExpr) string {
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		if s := c.pass.TypesInfo.Selections[sel]; s != nil && s.Kind() == types.MethodExpr {
			return "" // its arguments begin with the receiver
		}
	}
	fn, _ := typeutil.Callee(c.pass.TypesInfo, call).(*types.Func)
	if fn == nil {
		return ""
	}
	return withoutArity(fn.Origin())
}
