package signature

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"

	"github.com/godelayed/delayed/internal/function"
)

// sources reads the names of parameters, which are not in the program, from its source files.
type sources struct {
	files token.FileSet
	known map[string]*ast.File // nil: cannot be read
}

// names returns the names of the parameters of a function, or nil if its source is missing or has changed since. A name
// is empty where the source has none.
func (s *sources) names(info *function.Info) []string {
	if info.Func == nil {
		return nil
	}
	symbol := info.Func.Name()
	path, line := info.Func.FileLine(info.Func.Entry())
	file := s.file(path)
	if file == nil {
		return nil
	}
	found := declaration(file, symbol)
	if literal.MatchString(symbol) {
		found = s.literal(file, line)
	}
	if found == nil {
		return nil
	}
	names := flatten(found.Params)
	switch len(names) - len(info.Params) {
	case 0:
		return names
	case 1: // the context
		return names[1:]
	}
	return nil
}

// literal is how the runtime names function literals: those in functions, and those of package variables.
var literal = regexp.MustCompile(`\.(func\d+|\d+)$`)

// literal returns the type of the innermost function literal around a line; nil if there are two.
func (s *sources) literal(file *ast.File, line int) *ast.FuncType {
	var found *ast.FuncLit
	two := false
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.FuncLit); ok && s.line(lit.Pos()) <= line && line <= s.line(lit.End()) {
			two = found != nil && s.line(found.Pos()) == s.line(lit.Pos())
			found = lit
		}
		return true
	})
	if found == nil || two {
		return nil
	}
	return found.Type
}

// declaration returns the type of the function or method that the runtime names symbol: pkg.F, pkg.T.M or pkg.(*T).M,
// and [...] behind what is generic.
func declaration(file *ast.File, symbol string) *ast.FuncType {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := f.Name.Name
		if f.Recv != nil && len(f.Recv.List) == 1 {
			name = receiver(f.Recv.List[0].Type) + "." + name
		}
		if generic := generics.ReplaceAllString(symbol, ""); generic[dot(generic)+1:] == name {
			return f.Type
		}
	}
	return nil
}

var generics = regexp.MustCompile(`\[\.\.\.\]`)

// dot returns the place of the dot behind the import path.
func dot(symbol string) int {
	slash := strings.LastIndexByte(symbol, '/') + 1
	return slash + strings.IndexByte(symbol[slash:], '.')
}

// receiver writes a receiver's type as the runtime does.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return "(*" + receiver(e.X) + ")"
	case *ast.ParenExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func (s *sources) line(p token.Pos) int { return s.files.Position(p).Line }

func (s *sources) file(path string) *ast.File {
	file, ok := s.known[path]
	if !ok {
		var err error
		if file, err = parser.ParseFile(&s.files, path, nil, parser.SkipObjectResolution); err != nil {
			file = nil
		}
		if s.known == nil {
			s.known = map[string]*ast.File{}
		}
		s.known[path] = file
	}
	return file
}

// flatten returns one name for each parameter.
func flatten(params *ast.FieldList) (names []string) {
	for _, field := range params.List {
		if len(field.Names) == 0 {
			names = append(names, "")
		}
		for _, name := range field.Names {
			names = append(names, strings.TrimLeft(name.Name, "_"))
		}
	}
	return names
}
