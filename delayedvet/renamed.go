package delayedvet

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"
)

// Renamed suggests the present names of package delayed for those that it had before 0.1.0. Code with the old names
// does not compile, so it runs despite type errors; go vet stops at them. It is safe for concurrent use.
var Renamed = &analysis.Analyzer{
	Name: "delayedrenamed",
	Doc: `suggest the present names for those that package delayed had before 0.1.0

Code that uses the old names does not compile: "go vet" stops there, "delayedvet -fix ./..." repairs it.`,
	URL:              Analyzer.URL,
	Requires:         []*analysis.Analyzer{inspect.Analyzer},
	Run:              runRenamed,
	RunDespiteErrors: true,
}

// renamed are the names that package delayed no longer has, each with the present one.
var renamed = map[string]string{
	"Redis": "Store", "Discard": "Archive",
	"Fail": "ConflictFail", "Skip": "ConflictSkip", "Replace": "ConflictReplace",
}

// limits are the fields that WorkerConfig had itself and has in Limits now. Once stands for two of them.
var limits = []string{"MaxTasks", "MaxTime", "MaxMemory", "StopWhenEmpty", "StopWhenEmptyFor", "Once"}

func runRenamed(pass *analysis.Pass) (any, error) {
	lib := imported(pass.Pkg, root)
	if lib == nil || lib == pass.Pkg {
		return nil, nil
	}
	c := &checker{pass: pass}
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector) //nolint:errcheck // by contract
	in.Preorder([]ast.Node{
		(*ast.CallExpr)(nil), (*ast.CompositeLit)(nil), (*ast.SelectorExpr)(nil),
	}, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			c.renameSelected(n)
		case *ast.CompositeLit:
			if config := c.typeName(pass.TypesInfo.TypeOf(n)); config == inRoot("WorkerConfig") {
				c.moveLimits(n, lib.Scope().Lookup("WorkerLimits"))
			}
		case *ast.CallExpr:
			c.checkCalled(n)
		}
	})
	return nil, nil
}

// suggest reports an old name and what stands in its place, with edits that certainly mean the same, if there are any.
func (c *checker) suggest(n ast.Node, want, found string, edits ...analysis.TextEdit) {
	d := analysis.Diagnostic{Pos: n.Pos(), End: n.End(), Message: fmt.Sprintf(
		"delayed: expected %s, found %s, as before 0.1.0; change it, or run delayedvet -fix", want, found)}
	if len(edits) > 0 {
		d.SuggestedFixes = []analysis.SuggestedFix{{Message: "Write " + want, TextEdits: edits}}
	}
	c.pass.Report(d)
}

func (c *checker) suggestName(id *ast.Ident, now string) {
	c.suggest(id, now, id.Name, replace(id, now))
}

// renameSelected renames what is selected of the package, a worker or its configuration, unless the compiler knows it.
func (c *checker) renameSelected(sel *ast.SelectorExpr) {
	info, old := c.pass.TypesInfo, sel.Sel.Name
	if info.Uses[sel.Sel] != nil {
		return
	}
	if id, ok := sel.X.(*ast.Ident); ok {
		if pkg, ok := info.Uses[id].(*types.PkgName); ok {
			if now := renamed[old]; now != "" && pkg.Imported().Path() == root {
				c.suggestName(sel.Sel, now)
			}
			return
		}
	}
	member := func(name string) types.Object {
		if info.TypeOf(sel.X) == nil {
			return nil
		}
		obj, _, _ := types.LookupFieldOrMethod(info.TypeOf(sel.X), true, c.pass.Pkg, name)
		return obj
	}
	if fn, ok := member("OnEvent").(*types.Func); ok && old == "Listen" && fn.FullName() == ofWorker("OnEvent") {
		c.suggestName(sel.Sel, "OnEvent")
	}
	field, ok := member("Limits").(*types.Var)
	switch {
	case !ok || !slices.Contains(limits, old) || c.typeName(field.Type()) != inRoot("WorkerLimits"):
	case old == "Once":
		c.suggest(sel.Sel, "Limits.MaxTasks of 1 and Limits.StopWhenEmpty", old)
	default:
		c.suggestName(sel.Sel, "Limits."+old)
	}
}

// checkCalled moves the name of a queue to the front of the arguments of OpenQueue, and renames the method Listen where
// another error hides the type of its receiver, if it takes a function of an event.
func (c *checker) checkCalled(call *ast.CallExpr) {
	if fn, ok := typeutil.Callee(c.pass.TypesInfo, call).(*types.Func); ok {
		if fn.FullName() == inRoot("OpenQueue") && fn.Signature().Params().Len() == 3 && len(call.Args) == 2 {
			c.moveName(call)
		}
		return
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Listen" || len(call.Args) != 1 {
		return
	}
	t := c.pass.TypesInfo.TypeOf(sel.X)
	sig, ok := c.pass.TypesInfo.TypeOf(call.Args[0]).(*types.Signature)
	if (t == nil || t == types.Typ[types.Invalid]) && ok && sig.Params().Len() == 1 &&
		c.typeName(sig.Params().At(0).Type()) == inRoot("Event") {
		c.suggestName(sel.Sel, "OnEvent")
	}
}

// moveLimits moves fields of a WorkerConfig to its Limits.
func (c *checker) moveLimits(lit *ast.CompositeLit, to types.Object) {
	var texts, old []string
	var at []int
	sure := fieldOf(lit, "Limits") == nil
	for i, e := range lit.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return
		}
		key, ok := kv.Key.(*ast.Ident)
		if !ok || !slices.Contains(limits, key.Name) || c.pass.TypesInfo.Uses[key] != nil {
			continue
		}
		text := c.print(kv)
		if key.Name == "Once" {
			text = "MaxTasks: 1, StopWhenEmpty: true"
			value := c.pass.TypesInfo.Types[kv.Value].Value
			sure = sure && value != nil && value.String() == "true" && fieldOf(lit, "MaxTasks") == nil &&
				fieldOf(lit, "StopWhenEmpty") == nil
		}
		at, texts, old = append(at, i), append(texts, text), append(old, key.Name)
	}
	name, ok := to.(*types.TypeName)
	if !ok || len(at) == 0 {
		return
	}
	first := lit.Elts[at[0]]
	want := "Limits: " + c.nameHere(name, lit.Pos()) + "{" + strings.Join(texts, ", ") + "}"
	edits := []analysis.TextEdit{replace(first, want)}
	for _, i := range at[1:] {
		edits = append(edits, remove(lit.Elts, i))
	}
	if !sure || c.cutsComment(edits) {
		edits = nil
	}
	c.suggest(first, want, strings.Join(old, ", ")+" outside of Limits", edits...)
}

// cutsComment reports whether edits would delete a comment.
func (c *checker) cutsComment(edits []analysis.TextEdit) bool {
	return slices.ContainsFunc(edits, func(e analysis.TextEdit) bool {
		return slices.ContainsFunc(c.fileAt(e.Pos).Comments, func(g *ast.CommentGroup) bool {
			return e.Pos <= g.Pos() && g.Pos() < e.End
		})
	})
}

// moveName moves the name of a queue from the configuration to the front of the arguments.
func (c *checker) moveName(call *ast.CallExpr) {
	var edits []analysis.TextEdit
	if lit, ok := ast.Unparen(call.Args[1]).(*ast.CompositeLit); ok {
		i := slices.IndexFunc(lit.Elts, func(e ast.Expr) bool {
			kv, ok := e.(*ast.KeyValueExpr)
			return ok && c.print(kv.Key) == "Name"
		})
		if i >= 0 {
			cut := remove(lit.Elts, i)
			if len(lit.Elts) == 1 {
				cut.End = lit.Rbrace // with the comma
			}
			edits = []analysis.TextEdit{cut, insert(call.Args[0].Pos(), c.print(fieldOf(lit, "Name"))+", ")}
		}
	}
	if c.cutsComment(edits) {
		edits = nil
	}
	c.suggest(call.Args[1], "OpenQueue(name, rdb, QueueConfig{...})", "the name in QueueConfig", edits...)
}
