package delayedvet

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

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

// isDangerous reports whether a function or a type of a package gives tasks the machine.
func isDangerous(pkg *types.Package, name string) bool {
	if pkg == nil {
		return false
	}
	path := pkg.Path()
	if strings.HasPrefix(path, "golang.org/x/sys/") {
		path = "golang.org/x/sys"
	}
	names, listed := dangerous[path]
	return listed && (names == nil || slices.Contains(names, name))
}

// checkDanger reports the registration of a function that runs commands or the like.
func (c *checker) checkDanger(at ast.Node, e ast.Expr, f *function) {
	if f.obj == nil || !isDangerous(f.pkg, f.obj.Name()) {
		return
	}
	c.reportf(at, e, "%s: expected a function that is safe with whatever arguments a task has, found one that gives "+
		"the machine to everybody who can write to Redis; register one of your own that does only what is needed",
		f.obj.Pkg().Path()+"."+f.obj.Name())
}

// checkDangerousReceiver is checkDanger for the receiver of methods.
func (c *checker) checkDangerousReceiver(call *ast.CallExpr, t types.Type) {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return
	}
	if path, name := named.Obj().Pkg().Path(), named.Obj().Name(); isDangerous(named.Obj().Pkg(), name) {
		c.reportf(call, call.Args[0], "%s: expected a receiver whose methods are safe with whatever arguments a task "+
			"has, found one that gives the machine to everybody who can write to Redis; register a type of your own "+
			"that does only what is needed", path+"."+name)
	}
}
