package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const root = "../.."

// TestFaults checks the entries without running their tests, which make faults does.
func TestFaults(t *testing.T) {
	faults, err := readFaults(".")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(faults); n == 0 || n > 150 {
		t.Errorf("expected 1 to 150 faults, which take ten minutes, found %d: remove those that matter least", n)
	}
	files, err := readTree(root)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(root + "/docs/RELIABILITY.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range faults {
		if seen[f.String()] {
			t.Errorf("%s: expected a sentence of its own for each fault, found it twice: say what differs", f)
		}
		if !seen[f.file] && !strings.Contains(string(page), "(../itest/faults/"+f.file+")") {
			t.Errorf("expected a link to %s in docs/RELIABILITY.md, found none: add the promise", f.file)
		}
		seen[f.String()], seen[f.file] = true, true
		trial, err := f.trial(files)
		if err != nil {
			t.Error(err)
			continue
		}
		if ok, err := testExists(root, trial.tests[0]); err != nil {
			t.Error(err)
		} else if !ok {
			t.Errorf("%s: expected a test %s, found none: name one that the fault makes fail", f, trial.tests[0])
		}
	}
}

func TestWrongEntries(t *testing.T) {
	files := map[string]string{"a/x.go": "one two two", "a/y.go": "three", "ab/z.go": "three"}
	right := fault{"f.toml", "it breaks", "a", "three", "four", "./a TestX/sub"}
	if got, err := right.trial(files); err != nil || got.path != "a/y.go" || got.text != "four" {
		t.Fatalf("expected a/y.go to become four, found %q, %q, %v", got.path, got.text, err)
	}
	for want, wrong := range map[string]func(*fault){
		`exactly once here, found it 2 times in ["a/y.go" "ab/z.go"]: lengthen old`: func(f *fault) { f.In = "" },
		`below a, found it 2 times in ["a/x.go"]: lengthen old`:                     func(f *fault) { f.Old = "two" },
		"found it 0 times in []: the code has changed":                              func(f *fault) { f.Old = "five" },
		"expected old and new to differ":                                            func(f *fault) { f.New = "three" },
		"expected a sentence in breaks":                                             func(f *fault) { f.Breaks = "" },
		`found "./a": name one`:                                                     func(f *fault) { f.Test = "./a" },
	} {
		f := right
		wrong(&f)
		if _, err := f.trial(files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("expected an error with %q, found %v", want, err)
		}
	}
	dir := t.TempDir()
	write(t, dir, "f.toml", "[[fault]]\nbreak = 'x'\n")
	if _, err := readFaults(dir); err == nil || !strings.Contains(err.Error(), "found fault.break") {
		t.Errorf("expected an error about the unknown key, found %v", err)
	}
}

func TestMutants(t *testing.T) {
	for name, c := range map[string]struct {
		mutate func(string, map[int]bool) ([]mutant, error)
		source string
		want   []string // the lines that take the place of the third
	}{
		"a condition and its constant": {
			mutateGo, "package p\nfunc f(n int) bool {\n\tif n > 7 {\n\t\treturn true\n\t}\n\treturn false\n}\n",
			[]string{"if !(n > 7) {", "if n >= 7 {", "if n > (7+1) {"},
		},
		"a statement": {
			mutateGo, "package p\nfunc f(a []int) {\n\ta[0] = g() + h()\n\tg()\n}\n",
			[]string{"", "a[(0+1)] = g() + h()", "a[0] = g() - h()", "return; a[0] = g() + h()"},
		},
		"an error": {
			mutateGo, "package p\nfunc f(err error) (string, error) {\n\treturn \"a\" + \"b\", err\n}\n",
			[]string{`return "a" + "b", nil`},
		},
		"the header of a loop": {
			mutateGo, "package p\nfunc f() {\n\tfor i := g(); i != nil; i = i.next {\n\t}\n}\n",
			[]string{"for i := g(); i == nil; i = i.next {"},
		},
		"a condition in Lua": {
			lua, "\n\n  if a == b and c then d() end -- if so, then\n",
			[]string{
				"if a == b or c then d() end -- if so, then", "if a ~= b and c then d() end -- if so, then",
				"if not (a == b and c) then d() end -- if so, then",
			},
		},
		"a statement in Lua":      {lua, "\n\n  redis.call('DEL', KEYS[1])\n", []string{""}},
		"a part of one in Lua":    {lua, "\n\n  redis.call('DEL', f(\n", nil},
		"a comment in Lua":        {lua, "\n\n-- if a == b then\n", nil},
		"a local variable in Lua": {lua, "\n\nlocal a = b - c\n", []string{"local a = b + c"}},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := c.mutate(c.source, map[int]bool{3: true})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range list {
				changed := c.source[:m.start] + m.text + c.source[m.end:]
				got = append(got, strings.TrimSpace(strings.Split(changed, "\n")[2]))
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("expected %q, found %q", c.want, got)
			}
		})
	}
}

func lua(source string, lines map[int]bool) ([]mutant, error) { return mutateLua(source, lines), nil }

func TestChangedLines(t *testing.T) {
	got := changedLines("--- a/x.go\n+++ b/x.go\n@@ -3 +3,2 @@ func f\n-a\n+b\n+c\n" +
		"@@ -9,2 +10,0 @@\n-d\n-e\n@@ -20 +19 @@\n-f\n+g\n")
	if x := got["x.go"]; len(x) != 3 || !x[3] || !x[4] || !x[19] {
		t.Errorf("expected the lines 3, 4 and 19 of x.go, found %v", got)
	}
}

// TestOutcomes tries faults and mutants in a small module: one that its test notices, one that it does not, one that
// does not compile. The script counts as part of the code, as those in package lua do.
func TestOutcomes(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "go.mod", "module m\n\ngo 1.25\n")
	write(t, dir, "p/p.go", `package p

import _ "embed"

//go:embed s.lua
var script string

func limit() int { return 7 }

func unused() int { return 8 }
`)
	write(t, dir, "p/s.lua", "return 9\n")
	write(t, dir, "p/p_test.go", `package p

import "testing"

func TestP(t *testing.T) {
	if limit() != 7 || script != "return 9\n" {
		t.Fail()
	}
}
`)
	write(t, dir, "itest/faults/f.toml", `
[[fault]]
breaks = "noticed"
old = 'return 7'
new = 'return 6'
test = "./p TestP"

[[fault]]
breaks = "noticed in a script"
old = 'return 9'
new = 'return 6'
test = "./p TestP"

[[fault]]
breaks = "unnoticed"
old = 'return 8'
new = 'return 6'
test = "./p TestP"

[[fault]]
breaks = "not compiled"
old = 'return 7'
new = 'return x'
test = "./p TestP"
`)
	var out bytes.Buffer
	err := run(t.Context(), &out, []string{"-dir", dir, "noticed in"})
	if err != nil || !strings.Contains(out.String(), "1 faults, each caught") {
		t.Errorf("expected the fault of the script to be caught, found %v and\n%s", err, &out)
	}
	out.Reset()
	err = run(t.Context(), &out, []string{"-dir", dir})
	if err == nil || !strings.Contains(err.Error(), "each of 4 faults, found 2 without") {
		t.Errorf("expected an error about two faults, found %v", err)
	}
	for outcome, sentence := range map[outcome]string{survived: "unnoticed", invalid: "not compiled"} {
		if !slices.ContainsFunc(strings.Split(out.String(), "\n"), func(line string) bool {
			return strings.HasPrefix(line, string(outcome)) && strings.HasSuffix(line, sentence)
		}) {
			t.Errorf("expected a line for the fault that is %s, found\n%s", sentence, &out)
		}
	}

	for _, args := range []string{"init -q", "add .", "-c user.name=n -c user.email=e commit -qm m"} {
		cmd := exec.CommandContext(t.Context(), "git", strings.Fields(args)...)
		cmd.Dir = dir
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, text)
		}
	}
	write(t, dir, "p/q.go", "package p\n")
	write(t, dir, "p/p.go", strings.ReplaceAll(read(t, dir, "p/p.go"), "() int { return", "() int { return 0 +"))
	out.Reset()
	if err := run(t.Context(), &out, []string{"-dir", dir, "-since", "HEAD", "-for", time.Hour.String()}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"6 mutants", "p/p.go:10: 8 -> (8+1)", "p/p.go:10: 0 -> (0+1)", "p/p.go:10: + -> -", "3 caught, 3 survived",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("expected %q in\n%s", want, &out)
		}
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
