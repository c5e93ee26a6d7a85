//go:build unix

package itest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/godelayed/delayed/internal/childproc"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestPythonStubsExample runs examples/python-stubs as its README says: the typed module is what the worker program gives, mypy accepts the service
// that uses it, and the worker runs what it delays.
func TestPythonStubsExample(t *testing.T) {
	interpreter, problem := findPython()
	if problem != "" {
		t.Fatal(problem)
	}
	server := redistest.Start(t)
	examples := filepath.Join("..", "examples")
	dir := filepath.Join(examples, "python-stubs")
	binary := filepath.Join(t.TempDir(), "worker")
	// Without REDIS_URL and DELAYED_ variables, because -functions needs neither.
	env := []string{"PYTHONDONTWRITEBYTECODE=1", "GOWORK=off"}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "REDIS_URL=") && !strings.HasPrefix(v, "DELAYED_") {
			env = append(env, v)
		}
	}
	run := func(dir, stdin, name string, args ...string) string {
		t.Helper()
		var stderr strings.Builder
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stderr = dir, env, strings.NewReader(stdin), &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, stderr.String())
		}
		return string(out)
	}
	run(examples, "", "go", "build", "-o", binary, "./worker")
	functions := run(dir, "", binary, "-functions")
	run(dir, functions, interpreter, "-m", "godelayed.stubs", "-", "-o", "tasks.py", "--check")
	run(dir, "", interpreter, "-m", "mypy", "--strict", "--cache-dir", t.TempDir(), "service.py")

	env = append(env, "REDIS_URL="+server.URL())
	worker := exec.CommandContext(t.Context(), binary, "-queues", "mail", "-concurrency", "1")
	worker.Env = env
	p, err := childproc.Start(worker)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	run(dir, "", interpreter, "service.py")
	want := []string{
		"mail to user 42: Welcome", "mail to user 42: New: shoes, hats", "mail to user 42: Order 7, 1 lines, 25.00 EUR",
		"mail to user 1: Willkommen", "mail to user 2: Willkommen",
	}
	printed := func() []string {
		var lines []string
		for line := range strings.Lines(p.Output()) {
			if strings.HasPrefix(line, "mail to user ") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		return lines
	}
	waitFor(t, "five mails", func() bool { return len(printed()) >= len(want) })
	if err := p.Stop(pythonLimit); err != nil || p.ExitCode() != 0 {
		t.Errorf("the worker did not stop well: %v, %s\n%s", err, p.Describe(), p.Output())
	}
	if got := printed(); !slices.Equal(got, want) {
		t.Errorf("expected %q, found %q", want, got)
	}
}
