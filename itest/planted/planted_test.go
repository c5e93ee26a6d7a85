package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// tree makes a git repository with a module of one function and its test, and one patch of the given text.
func tree(t *testing.T, patchText string) (root string) {
	t.Helper()
	root = t.TempDir()
	files := map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.25.0\n",
		"m.go": "package m\n\n// Add adds.\nfunc Add(a, b int) int {\n\treturn a + b\n}\n\n// " +
			"Sub subtracts.\nfunc Sub(a, b int) int {\n\treturn a - b\n}\n",
		"m_test.go": "package m\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) " +
			"{\n\tt.Run(\"two\", func(t *testing.T) {\n\t\tif Add(1, 1) != 2 {\n\t\t\tt.Error(\"not " +
			"two\")\n\t\t}\n\t})\n}\n",
		"itest/planted/plus.patch": patchText,
	}
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", root).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	return root
}

func TestVerdicts(t *testing.T) {
	const (
		head  = "# Breaks: the sum.\n# Test: ./... -run TestAdd\n"
		diff  = "--- a/m.go\n+++ b/m.go\n@@ -104,3 +104,3 @@\n func Add(a, b int) int {\n"
		after = " }\n"
	)
	for _, c := range []struct{ name, patch, words, want string }{
		{
			"caught although the lines moved", head + diff + "-\treturn a + b\n+\treturn a - b\n" + after, "",
			"caught by TestAdd/two",
		},
		{
			"caught although a line above differs",
			strings.Replace(head+diff+"-\treturn a + b\n+\treturn a - b\n"+after, " func Add",
				" // Once upon a time.\n func Add", 1), "", "caught by TestAdd/two",
		},
		{"survives", head + diff + "-\treturn a + b\n+\treturn b + a\n" + after, "", "SURVIVED"},
		{"does not apply", head + diff + "-\treturn a * b\n+\treturn a - b\n" + after, "", "DOES NOT APPLY"},
		{"does not compile", head + diff + "-\treturn a + b\n+\treturn c\n" + after, "", "DOES NOT COMPILE"},
		{"no such test", strings.Replace(head, "TestAdd", "TestNone", 1) + diff + "-\treturn a + b\n+\treturn a - b\n" +
			after, "", "runs no test"},
		{"says nothing", diff + "-\treturn a + b\n+\treturn a - b\n" + after, "", `expected a line "# Breaks`},
		{"no such patch", head + diff + "-\treturn a + b\n+\treturn a - b\n" + after, "minus", "no patch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(tree(t, c.patch))
			t.Setenv("GOWORK", "off")
			var out strings.Builder
			err := run(t.Context(), &out, strings.Fields(c.words))
			text := out.String()
			if err != nil {
				text += err.Error()
			}
			if !strings.Contains(text, c.want) {
				t.Errorf("expected %q in:\n%s", c.want, text)
			}
			if caught := strings.HasPrefix(c.want, "caught"); caught != (err == nil) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestUndo(t *testing.T) {
	root := tree(t, "")
	file := filepath.Join(root, "m.go")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	patchFile := filepath.Join(t.TempDir(), "p.patch")
	text := "# Breaks: the sum.\n# Test: .\n--- a/m.go\n+++ b/m.go\n@@ -3,3 +3,3 @@\n func Add(a, b int) int " +
		"{\n-\treturn a + b\n+\treturn a - b\n }\n" +
		"diff --git a/new.go b/new.go\nnew file mode 100644\n--- /dev/null\n+++ b/new.go\n@@ -0,0 +1 @@\n+package m\n"
	if err := os.WriteFile(patchFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := parsePatch(text)
	if err != nil {
		t.Fatal(err)
	}
	p.file = patchFile
	undo, err := apply(t.Context(), root, p)
	if err != nil {
		t.Fatal(err)
	}
	if broken, err := os.ReadFile(file); err != nil || string(broken) == string(before) {
		t.Fatalf("not applied: %v", err)
	}
	undo()
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("not restored: %v\n%s", err, after)
	}
	if _, err := os.Stat(filepath.Join(root, "new.go")); !os.IsNotExist(err) {
		t.Errorf("the new file is still there: %v", err)
	}
}

func TestReadPytest(t *testing.T) {
	for text, want := range map[string]result{
		"..F\nFAILED tests/test_worker.py::test_a[x-1] - AssertionError: 1\n1 failed, 2 passed in 0.1s\n": {
			ran:    3,
			failed: []string{"test_worker.py::test_a[x-1]"},
		},
		"...\n3 passed, 7 deselected in 0.10s\n": {ran: 3},
		"7 deselected in 0.10s\n":                {},
	} {
		want.output = text
		if got := readPytest(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, expected %+v", text, got, want)
		}
	}
	p, err := parsePatch("# Breaks: x.\n# Pytest: tests/a.py -k b\n# Test: . -run C\n--- a/x\n+++ b/x\n")
	if err != nil || len(p.tests) != 2 || p.tests[0].String() != "pytest tests/a.py -k b" ||
		p.tests[1].String() != "go test . -run C" {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestPrune(t *testing.T) {
	const before = "package m\n\nfunc TestAdd(t *testing.T) { a() }\n\nfunc TestSub(t *testing.T) " +
		"{\n\tb()\n}\n\nfunc help() { c() }\n"
	const after = "package m\n\nfunc TestAdd(t *testing.T) { a() }\n\nfunc TestSub(t *testing.T) { if false " +
		"{\n\tb()\n} }\n\nfunc help() { c() }\n"
	named, err := topLevel("^TestAdd$/sub|TestAlso")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := without(before, named); err != nil || got != after {
		t.Errorf("%v, %s", err, got)
	}
}

func TestTogether(t *testing.T) {
	p, err := parsePatch("# Breaks: x.\n# Test: . -run A\n# Test: -C itest ./p -run B -v\n# Test: . -run C/d\n--- " +
		"a/x\n+++ b/x\n")
	if err != nil {
		t.Fatal(err)
	}
	if a, b, c := p.tests[0], p.tests[1], p.tests[2]; a.where() != c.where() || a.where() == b.where() ||
		together([]test{a, c}).String() != "go test . -run A|C/d" || together([]test{b}).String() != b.String() {
		t.Errorf("%q, %q, %q: %q", a.where(), b.where(), c.where(), together([]test{a, c}))
	}
}
