//go:build unix

package itest_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/childproc"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/seam"
	"github.com/godelayed/delayed/internal/signature"
)

// TestPythonStubsExample runs examples/python-stubs as its README says: the typed module is the one made from the
// worker program, mypy accepts the service that uses it, and the worker runs the service's tasks.
func TestPythonStubsExample(t *testing.T) {
	t.Parallel()
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

// The types that the worker of TestPythonStubsResults uses.
type (
	stubOrder struct {
		ID    uint32 `msgpack:"id"`
		Lines []stubLine
		Due   time.Time
		Photo []byte `msgpack:"photo,omitempty"`
	}
	stubLine struct {
		Article string
		Count   int8 `msgpack:"n"`
		Note    *string
	}
	stubReceipt struct {
		Order stubOrder
		Total float64
		Notes map[string]int
		Empty []string
	}
)

// TestPythonStubsResults calls Go functions through a typed module and gets the results as the declared types.
func TestPythonStubsResults(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	queue := redistest.Name(t)
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	log := logrus.New()
	log.SetOutput(t.Output())
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{Queues: delayed.Strict{queue}, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Register(
		delayed.Func(func(_ context.Context, order stubOrder, price float64, notes map[string]int) (stubReceipt,
			error,
		) {
			var n float64
			for _, l := range order.Lines {
				n += float64(l.Count)
			}
			return stubReceipt{Order: order, Total: n * price, Notes: notes}, nil
		}, delayed.Name("example.com/stubs.Place")),
		delayed.Func(func(words ...string) int { return len(words) }, delayed.Name("example.com/stubs.Count")),
		delayed.Func(func(a int, b string, c bool) string { return fmt.Sprintf("%d%q%t", a, b, c) },
			delayed.Name("example.com/stubs.Late"), delayed.Optional(2)),
	); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var functions bytes.Buffer
	infos := seam.Functions(w).([]function.Info) //nolint:errcheck // by contract
	if err := signature.Write(&functions, infos); err != nil {
		t.Fatal(err)
	}
	// The types of this program begin with stub to differ from others in the package; the module leaves that out.
	text := strings.ReplaceAll(functions.String(), "itest_test.stub", "itest_test.")
	if err := os.WriteFile(filepath.Join(dir, "functions.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- w.Run(ctx) }()
	got := runPython(t, "stubs.py", "--url", server.URL(), "--queue", queue, "--folder", dir)
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	want := []string{"6.0 {'a': 1} []", "0 0", "2", `1""false 1"x"true`, "1"}
	if !slices.Equal(got, want) {
		t.Errorf("Python printed %q, expected %q", got, want)
	}
}
