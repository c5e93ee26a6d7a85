package delayedvet

import (
	"go/ast"
	"go/types"
	"slices"
	"strconv"
	"strings"
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

// dangerous are packages whose functions let a task do what it likes with the machine: run programs, call the system,
// write memory, load code. A nil list names all functions of the package.
var dangerous = map[string][]string{
	"os/exec":          nil,
	"syscall":          nil,
	"unsafe":           nil,
	"plugin":           nil,
	"runtime/debug":    {"WriteHeapDump", "SetMaxStack", "SetMaxThreads", "SetMemoryLimit", "SetGCPercent"},
	"golang.org/x/sys": nil,
	"log":              {"Fatal", "Fatalf", "Fatalln", "SetOutput"},
	"io/ioutil":        {"ReadFile", "WriteFile", "TempDir", "TempFile"},
	"database/sql":     nil,
	"os": {
		"Chdir", "Chmod", "Chown", "Chtimes", "Clearenv", "CopyFS", "Create", "CreateTemp", "Exit", "Lchown", "Link",
		"Mkdir", "MkdirAll", "MkdirTemp", "NewFile", "Open", "OpenFile", "OpenRoot", "ReadDir", "ReadFile", "Remove",
		"RemoveAll", "Rename", "Setenv", "StartProcess", "Symlink", "Truncate", "Unsetenv", "WriteFile", "Getenv",
		"LookupEnv", "Environ", "FindProcess", "ExpandEnv", "File", "Process", "Root",
	},
}

// checkDanger reports the registration of a function, or of a receiver's type, that gives tasks the machine.
func (c *checker) checkDanger(at ast.Node, e ast.Expr, obj types.Object) {
	if obj.Pkg() == nil {
		return
	}
	path := obj.Pkg().Path()
	if strings.HasPrefix(path, "golang.org/x/sys/") {
		path = "golang.org/x/sys"
	}
	names, listed := dangerous[path]
	if !listed || names != nil && !slices.Contains(names, obj.Name()) {
		return
	}
	want, own := "a function that is", "one"
	if _, ok := obj.(*types.TypeName); ok {
		want, own = "a receiver whose methods are", "a type"
	}
	c.reportf(at, e, "%s: expected %s safe with whatever arguments a task has, found one that gives the machine to "+
		"everybody who can write to Redis; register %s of your own that does only what is needed",
		obj.Pkg().Path()+"."+obj.Name(), want, own)
}
