package delayedvet

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// finding is a diagnostic that was not reported yet.
type finding struct {
	analysis.Diagnostic

	lines []int // on which a comment may allow it
	file  *ast.File
}

// reportf notes what is wrong at node, which is part of the call or literal at.
func (c *checker) reportf(at, node ast.Node, format string, args ...any) {
	c.add(at, node, fmt.Sprintf(format, args...), nil)
}

// refuse notes a fault of the function e.
func (c *checker) refuse(at ast.Node, e ast.Expr, why *fault) { c.add(at, e, why.text, why.fix) }

func (c *checker) add(at, node ast.Node, text string, fix *fix) {
	f := finding{Diagnostic: analysis.Diagnostic{Pos: node.Pos(), End: node.End(), Message: "delayed: " + text}}
	if fix != nil {
		f.SuggestedFixes = []analysis.SuggestedFix{{Message: fix.text, TextEdits: fix.edits}}
	}
	f.file = c.fileAt(node.Pos())
	if f.file == nil || ast.IsGenerated(f.file) {
		return
	}
	f.lines = []int{c.line(node.Pos()), c.line(at.Pos()), c.line(at.End())}
	c.found = append(c.found, f)
}

func (c *checker) line(pos token.Pos) int { return c.pass.Fset.Position(pos).Line }

func (c *checker) fileAt(pos token.Pos) *ast.File {
	for _, f := range c.pass.Files {
		if f.FileStart <= pos && pos < f.FileEnd {
			return f
		}
	}
	return nil
}

// inTest reports whether a node is in a file of tests.
func (c *checker) inTest(n ast.Node) bool {
	return strings.HasSuffix(c.pass.Fset.Position(n.Pos()).Filename, "_test.go")
}

// allowance is a comment that silences a finding.
type allowance struct {
	comment *ast.Comment
	line    int
	reason  string
	used    bool
}

const directive = "//delayed:allow"

// allowances returns the comments of a file that allow something.
func (c *checker) allowances(file *ast.File) (all []*allowance) {
	for _, group := range file.Comments {
		for _, comment := range group.List {
			rest, ok := strings.CutPrefix(comment.Text, directive)
			if !ok || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
				continue
			}
			reason := strings.TrimSpace(rest)
			if strings.HasPrefix(reason, "//") {
				reason = "" // another comment
			}
			all = append(all, &allowance{comment: comment, line: c.line(comment.Pos()), reason: reason})
		}
	}
	return all
}

// report reports all findings in their order, except those that comments allow. A comment allows one.
func (c *checker) report() {
	allowed := map[*ast.File][]*allowance{}
	for _, file := range c.pass.Files {
		allowed[file] = c.allowances(file)
		for _, a := range allowed[file] {
			if a.reason == "" {
				c.found = append(c.found, finding{file: file, Diagnostic: analysis.Diagnostic{
					Pos: a.comment.Pos(), End: a.comment.End(), Message: "delayed: expected a reason behind " +
						directive + ", found none; say why this is right here",
				}})
			}
		}
	}
	slices.SortStableFunc(c.found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.Pos, b.Pos), cmp.Compare(a.Message, b.Message))
	})
	for _, f := range slices.CompactFunc(c.found, func(a, b finding) bool {
		return a.Pos == b.Pos && a.Message == b.Message
	}) {
		if !take(allowed[f.file], f.lines) {
			c.pass.Report(f.Diagnostic)
		}
	}
}

// take uses up a comment that allows a finding on one of the lines: one on the line itself or on the line before.
func take(all []*allowance, lines []int) bool {
	for _, line := range lines {
		for _, a := range all {
			if !a.used && a.reason != "" && (a.line == line || a.line == line-1) {
				a.used = true
				return true
			}
		}
	}
	return false
}
