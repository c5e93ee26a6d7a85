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

// TestPythonProducerExample runs examples/python-producer as its README says: the service, its Python worker and the Go
// worker.
func TestPythonProducerExample(t *testing.T) {
	t.Parallel()
	interpreter, problem := findPython()
	if problem != "" {
		t.Fatal(problem)
	}
	server := redistest.Start(t)
	dir := filepath.Join("..", "examples", "python-producer")
	binary := filepath.Join(t.TempDir(), "worker")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./worker")
	build.Dir = dir
	// The module alone, as a user's copy of it would be.
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	start := func(name string, args ...string) *childproc.Process {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "REDIS_URL="+server.URL())
		p, err := childproc.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		return p
	}
	goWorker := start(binary)
	pyWorker := start(filepath.Join(filepath.Dir(interpreter), "delayed-worker"), "tasks", "--queue", "py-jobs")
	service := start(interpreter, "service.py")
	if service.Err() != nil {
		t.Fatalf("service.py: %s\n%s", service.Describe(), service.Output())
	}
	printed := func(p *childproc.Process, mark string) []string {
		var lines []string
		for line := range strings.Lines(p.Output()) {
			if strings.HasPrefix(line, mark) {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		slices.Sort(lines)
		return lines
	}
	wantGo := []string{
		"go: forget old-beach.jpg", "go: resize beach.jpg to 320 x 200", "go: tag beach.jpg as holiday, sea",
		"go: tidy up",
	}
	wantPython := []string{"python: mail to ann@example.com: Your photo"}
	waitFor(t, "five calls", func() bool {
		return len(printed(goWorker, "go: ")) >= len(wantGo) && len(printed(pyWorker, "python: ")) >= len(wantPython)
	})
	if err := goWorker.Stop(pythonLimit); err != nil || goWorker.ExitCode() != 0 {
		t.Errorf("the Go worker did not stop well: %v, %s\n%s", err, goWorker.Describe(), goWorker.Output())
	}
	if got := printed(goWorker, "go: "); !slices.Equal(got, wantGo) {
		t.Errorf("expected the Go worker to print %q, found %q", wantGo, got)
	}
	if got := printed(pyWorker, "python: "); !slices.Equal(got, wantPython) {
		t.Errorf("expected the Python worker to print %q, found %q", wantPython, got)
	}
}
