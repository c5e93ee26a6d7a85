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
