package delayed_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// exportedNames returns the names that packages export, as "dir.Name" and "dir.Type.Name" for methods and fields; the
// root's dir is "delayed".
func exportedNames(t *testing.T, dirs map[string]string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for pkg, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				addNames(names, pkg, d)
			}
		}
	}
	return names
}

func addNames(names map[string]bool, pkg string, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil {
			typ := d.Recv.List[0].Type
			if star, ok := typ.(*ast.StarExpr); ok {
				typ = star.X
			}
			if id, ok := typ.(*ast.Ident); ok {
				name = id.Name + "." + name
			}
		}
		names[pkg+"."+name] = true
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, id := range s.Names {
					names[pkg+"."+id.Name] = true
				}
			case *ast.TypeSpec:
				names[pkg+"."+s.Name.Name] = true
				if st, ok := s.Type.(*ast.StructType); ok {
					for _, field := range st.Fields.List {
						for _, id := range field.Names {
							names[pkg+"."+s.Name.Name+"."+id.Name] = true
						}
					}
				}
			}
		}
	}
}

// Every name of ours in docs/MIGRATION.md exists.
func TestMigrationNames(t *testing.T) {
	text, err := os.ReadFile("docs/MIGRATION.md")
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]string{
		"delayed": ".", "workermain": "workermain", "delayedtest": "delayedtest", "rediscluster": "rediscluster",
		"redissentinel": "redissentinel", "delayedprom": "contrib/prometheus",
		"inspect": "inspect", "semaphore": "semaphore", "event": "event", "state": "state", "web": "web",
	}
	names := exportedNames(t, packages)
	// Variables of the page's examples, and types named without their package.
	of := map[string]string{
		"q": "Queue", "ref": "Ref", "rdb": "Redis", "w": "Worker", "Worker": "Worker", "WorkerConfig": "WorkerConfig",
		"QueueConfig": "QueueConfig",
		"Entry":       "Entry", "Task": "Task", "SchedulerConfig": "SchedulerConfig",
	}
	n := 0
	for _, m := range regexp.MustCompile(`\b([A-Za-z]+)\.([A-Z][A-Za-z]*)(?:\.([A-Z][A-Za-z]*))?`).
		FindAllStringSubmatch(string(text), -1) {
		var name string
		switch {
		case packages[m[1]] != "":
			name = m[1] + "." + m[2]
			if m[3] != "" {
				name += "." + m[3]
			}
		case of[m[1]] != "":
			name = "delayed." + of[m[1]] + "." + m[2]
		default:
			continue
		}
		n++
		if !names[name] {
			t.Errorf("docs/MIGRATION.md names %s: there is no %s", m[0], name)
		}
	}
	if n < 100 {
		t.Errorf("only %d names of ours were found", n)
	}
}
