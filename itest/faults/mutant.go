package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// alsoTested are the packages whose tests run after those of a mutated package, by the beginning of its path.
var alsoTested = []struct {
	prefix string
	pkgs   []string
}{
	{"lua/", []string{"./internal/redisstore", "./internal/sweep", "."}},
	{"internal/redisstore/", []string{"./internal/sweep", "."}},
	{"internal/", []string{"."}},
}

// mutant is a change of one place in a file: text in place of the bytes from start to end.
type mutant struct {
	start, end int
	text       string
}

// mutants returns the mutants of the lines of Go and Lua that differ from those of a revision, or of the place where
// the branch has left it. Files of other platforms have none.
func mutants(ctx context.Context, root, since string) ([]trial, error) {
	base, err := git(ctx, root, "merge-base", since, "HEAD")
	if err != nil {
		return nil, fmt.Errorf("expected a revision that HEAD has a common ancestor with, found %q: %w", since, err)
	}
	diff, err := git(ctx, root, "diff", "--unified=0", "--no-color", "--no-ext-diff", strings.TrimSpace(base), "--",
		"*.go", "*.lua", ":!*_test.go")
	if err != nil {
		return nil, err
	}
	files, err := readTree(root)
	if err != nil {
		return nil, err
	}
	var trials []trial
	for file, lines := range changedLines(diff) {
		source, ok := files[file]
		if !ok {
			continue
		}
		var list []mutant
		if path.Ext(file) == ".lua" {
			list = mutateLua(source, lines)
		} else if ok, err = build.Default.MatchFile(filepath.Join(root, path.Dir(file)), path.Base(file)); ok {
			list, err = mutateGo(source, lines)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		noticing, err := testsOf(root, file)
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			line := 1 + strings.Count(source[:m.start], "\n")
			name := fmt.Sprintf("%s:%d: %s -> %s", file, line, inShort(source[m.start:m.end]), inShort(m.text))
			changed := source[:m.start] + m.text + source[m.end:]
			trials = append(trials, trial{name, file, changed, noticing, 10 * time.Minute})
		}
	}
	return trials, nil
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(t `)

// testsOf returns the tests for a file: first those in test files whose names begin like its own, because they are most
// likely to notice, then all of its package, then those of other packages.
func testsOf(root, file string) ([]tests, error) {
	pkg := "./" + path.Dir(file)
	paths, err := filepath.Glob(filepath.Join(root, strings.TrimSuffix(file, path.Ext(file))+"*_test.go"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		for _, m := range testFunction.FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
	}
	var list []tests
	if len(names) > 0 {
		list = append(list, tests{pkg, "(" + strings.Join(names, "|") + ")"})
	}
	list = append(list, tests{pkg: pkg})
	for _, also := range alsoTested {
		if strings.HasPrefix(file, also.prefix) {
			for _, pkg := range also.pkgs {
				list = append(list, tests{pkg: pkg})
			}
			break
		}
	}
	return list, nil
}

var hunk = regexp.MustCompile(`^@@ -\S+ \+(\d+)(?:,(\d+))? @@`)

// changedLines reads a diff without context. It returns the numbers of the new lines of each file.
func changedLines(diff string) map[string]map[int]bool {
	files := map[string]map[int]bool{}
	var lines map[int]bool
	for line := range strings.Lines(diff) {
		if file, ok := strings.CutPrefix(line, "+++ b/"); ok {
			lines = map[int]bool{}
			files[strings.TrimSpace(file)] = lines
		}
		if m := hunk.FindStringSubmatch(line); m != nil && lines != nil {
			first, _ := strconv.Atoi(m[1])
			n := 1
			if m[2] != "" {
				n, _ = strconv.Atoi(m[2])
			}
			for i := range n {
				lines[first+i] = true
			}
		}
	}
	return files
}

// swapped are operators and words, and what takes their place.
var swapped = map[string]string{
	"==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "&&": "||", "||": "&&", "+": "-", "-": "+",
	"*": "/", "/": "*", "true": "false", "false": "true", "break": "continue", "continue": "break",
}

// mutateGo returns mutants of the nodes that begin in one of the lines.
func mutateGo(source string, lines map[int]bool) ([]mutant, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var list []mutant
	replace := func(from, to token.Pos, text string) {
		if lines[fset.Position(from).Line] {
			list = append(list, mutant{fset.Position(from).Offset, fset.Position(to).Offset, text})
		}
	}
	swap := func(at token.Pos, word string) {
		if other, ok := swapped[word]; ok {
			replace(at, at+token.Pos(len(word)), other)
		}
	}
	drop := func(statements []ast.Stmt) {
		for _, s := range statements {
			switch s := s.(type) {
			case *ast.ExprStmt, *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt, *ast.GoStmt:
				replace(s.Pos(), s.End(), "")
			case *ast.AssignStmt:
				if s.Tok != token.DEFINE {
					replace(s.Pos(), s.End(), "")
				}
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Type.Results == nil && n.Body != nil && len(n.Body.List) > 1 {
				replace(n.Body.List[0].Pos(), n.Body.List[0].Pos(), "return; ")
			}
		case *ast.BlockStmt:
			drop(n.List)
		case *ast.CaseClause:
			drop(n.Body)
		case *ast.CommClause:
			drop(n.Body)
		case *ast.IfStmt:
			from, to := fset.Position(n.Cond.Pos()), fset.Position(n.Cond.End())
			if b, ok := n.Cond.(*ast.BinaryExpr); !ok || b.Op != token.EQL && b.Op != token.NEQ {
				replace(n.Cond.Pos(), n.Cond.End(), "!("+source[from.Offset:to.Offset]+")")
			}
		case *ast.BinaryExpr:
			if n.Op != token.ADD || !isText(n.X) && !isText(n.Y) {
				swap(n.OpPos, n.Op.String())
			}
		case *ast.BranchStmt:
			if n.Label == nil {
				swap(n.Pos(), n.Tok.String())
			}
		case *ast.Ident:
			if n.Name == "true" || n.Name == "false" {
				swap(n.Pos(), n.Name)
			}
		case *ast.BasicLit:
			if n.Kind == token.INT {
				replace(n.Pos(), n.End(), "("+n.Value+"+1)")
			}
		case *ast.ReturnStmt:
			for _, r := range n.Results {
				if id, ok := r.(*ast.Ident); ok && id.Name == "err" {
					replace(r.Pos(), r.End(), "nil")
				}
			}
		}
		return true
	})
	return list, nil
}

// isText reports whether e is a string literal, which has no - in place of its +.
func isText(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING
}

var (
	luaCondition = regexp.MustCompile(`\bif (.+?) then\b`)
	luaOperator  = regexp.MustCompile(` (==|~=|<=|>=|<|>|and|or|\+|-) `)
	luaStatement = regexp.MustCompile(`^\s*(redis\.call\(|[\w.]+\[.+\] = |[\w.]+ = ).*[^,(]$`)
	luaSwapped   = map[string]string{
		"==": "~=", "~=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "and": "or", "or": "and",
		"+": "-", "-": "+",
	}
)

// mutateLua returns mutants of the lines: a condition negated, an operator swapped, a statement of one line left out.
func mutateLua(source string, lines map[int]bool) []mutant {
	var list []mutant
	number, offset := 0, 0
	for line := range strings.Lines(source) {
		start := offset
		number, offset = number+1, offset+len(line)
		code, _, _ := strings.Cut(strings.TrimRight(line, "\n"), " -- ")
		if !lines[number] || strings.HasPrefix(strings.TrimSpace(code), "--") {
			continue
		}
		for _, m := range luaCondition.FindAllStringSubmatchIndex(code, -1) {
			list = append(list, mutant{start + m[2], start + m[3], "not (" + code[m[2]:m[3]] + ")"})
		}
		for _, m := range luaOperator.FindAllStringSubmatchIndex(code, -1) {
			list = append(list, mutant{start + m[2], start + m[3], luaSwapped[code[m[2]:m[3]]]})
		}
		n := func(bracket string) int { return strings.Count(code, bracket) }
		if n("(") == n(")") && n("{") == n("}") && luaStatement.MatchString(code) {
			list = append(list, mutant{start, start + len(code), ""})
		}
	}
	return list
}

// inShort returns the beginning of a piece of code in one line.
func inShort(code string) string {
	code = strings.Join(strings.Fields(code), " ")
	if code == "" {
		return "nothing"
	}
	if len(code) > 60 {
		code = code[:57] + "..."
	}
	return code
}

func git(ctx context.Context, root string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	return string(out), err
}
