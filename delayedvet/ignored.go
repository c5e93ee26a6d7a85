package delayedvet

import "go/ast"

// mayFail are the calls whose error reports that a task was not enqueued, or that a function is not registered.
var mayFail = map[string]string{
	ofQueue("Delay"):            "the task was not enqueued",
	ofQueue("DelayContext"):     "the task was not enqueued",
	ofTyped("Delay"):            "the task was not enqueued",
	ofTyped("DelayContext"):     "the task was not enqueued",
	ofQueue("DelayMany"):        "the tasks were not enqueued",
	ofQueue("Enqueue"):          "the task was not enqueued",
	ofRef("RunAgainWith"):       "the task does not run again",
	ofWorker("Register"):        "the worker does not know the functions",
	ofWorker("RegisterMethods"): "the worker does not know the methods",
}

// checkIgnored reports a call whose results nobody takes.
func (c *checker) checkIgnored(call *ast.CallExpr, name string, stack []ast.Node) {
	why, ok := mayFail[name]
	if !ok {
		return
	}
	switch parent(stack).(type) {
	case *ast.ExprStmt, *ast.GoStmt, *ast.DeferStmt:
		c.reportIgnored(call, why)
	}
}

func (c *checker) reportIgnored(call *ast.CallExpr, why string) {
	c.reportf(call, call, "expected the error of %s to be read, found it ignored: it says why %s; handle it, or "+
		"return it", lastName(call.Fun).Name, why)
}

// checkBlank reports an assignment that keeps the reference of a task and drops the error: the reference is nil then.
func (c *checker) checkBlank(n *ast.AssignStmt) {
	if len(n.Rhs) != 1 || len(n.Lhs) != 2 || isBlank(n.Lhs[0]) || !isBlank(n.Lhs[1]) {
		return
	}
	if call, ok := ast.Unparen(n.Rhs[0]).(*ast.CallExpr); ok {
		if why, ok := mayFail[c.callee(call)]; ok {
			c.reportIgnored(call, why)
		}
	}
}

func isBlank(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}
