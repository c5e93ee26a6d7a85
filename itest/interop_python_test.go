//go:build unix

package itest_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/childproc"
	"github.com/godelayed/delayed/itest/ledger"
)

// pythonLimit is the time limit of a Python program that ends by itself.
const pythonLimit = 2 * time.Minute

// findPython looks once for an interpreter that has the real package of keakon.
var findPython = sync.OnceValues(func() (path, problem string) {
	path = os.Getenv("DELAYED_PYTHON")
	if path == "" {
		path = filepath.Join("..", ".venv", "bin", "python")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err.Error()
	}
	ctx, cancel := context.WithTimeout(context.Background(), pythonLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "-c", "import delayed.worker, redis, msgpack").CombinedOutput()
	if err != nil {
		return "", "no Python with the packages delayed, redis and msgpack: run `make setup`, which installs them " +
			"into .venv, or set " +
			"DELAYED_PYTHON to an interpreter that has them; " + path + ": " + err.Error() + "\n" + string(out)
	}
	return path, ""
})

// pythonCommand returns the command that runs a program of the directory python.
func pythonCommand(t *testing.T, env []string, program string, args ...string) *exec.Cmd {
	t.Helper()
	interpreter, problem := findPython()
	if problem != "" {
		t.Fatal(problem)
	}
	cmd := exec.Command(interpreter, append([]string{program}, args...)...)
	cmd.Dir = "python"
	// Use this repository's package, whatever is installed. Its byte code is kept outside of the source tree.
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(append(os.Environ(),
		"PYTHONDONTWRITEBYTECODE=", "PYTHONPYCACHEPREFIX="+filepath.Join(root, ".cache", "bytecode"),
		"PYTHONPATH="+filepath.Join(root, "python-compat", "src")), env...)
	return cmd
}

// runPython runs a program to its end and returns the lines it printed.
func runPython(t *testing.T, program string, args ...string) []string {
	t.Helper()
	p, err := childproc.Start(pythonCommand(t, nil, program, args...))
	if err != nil {
		t.Fatalf("starting %s: %v", program, err)
	}
	defer p.Kill()
	select {
	case <-p.Done():
	case <-time.After(pythonLimit):
		t.Fatalf("%s did not end within %v: %s", program, pythonLimit, p.Output())
	}
	if p.Err() != nil {
		t.Fatalf("%s: %s\n%s", program, p.Describe(), p.Output())
	}
	return strings.Split(strings.TrimSpace(p.Output()), "\n")
}

// startPython starts a program and waits until it says that it is ready. If it still runs at the end of the test, it is
// killed.
func startPython(t *testing.T, env []string, program string, args ...string) *childproc.Process {
	t.Helper()
	p, err := childproc.Start(pythonCommand(t, env, program, args...))
	if err != nil {
		t.Fatalf("starting %s: %v", program, err)
	}
	t.Cleanup(p.Kill)
	waitFor(t, program+" to be ready", func() bool {
		if !p.Running() {
			t.Fatalf("%s ended early: %s\n%s", program, p.Describe(), p.Output())
		}
		return strings.Contains(p.Output(), "ready")
	})
	return p
}

// stopPython ends a program by its signal for stopping and expects exit code 0.
func stopPython(t *testing.T, p *childproc.Process) {
	t.Helper()
	if err := p.Stop(time.Minute); err != nil {
		t.Fatalf("%v\n%s", err, p.Output())
	}
	if p.ExitCode() != 0 {
		t.Fatalf("%s\n%s", p.Describe(), p.Output())
	}
}

// pyLedger is the directory that Python tasks write their ledgers to.
type pyLedger string

func newPyLedger(t *testing.T) pyLedger {
	t.Helper()
	return pyLedger(t.TempDir())
}

// env is what worker.py needs to find the ledger.
func (l pyLedger) env() []string { return []string{"DELAYED_LEDGER=" + string(l)} }

// pyCall is one call of a recording function of interop_tasks.py.
type pyCall struct {
	Func   string         `json:"-"`
	Args   []any          `json:"args"`
	Kwargs map[string]any `json:"kwargs"`
}

// calls returns what has been called so far, in order.
func (l pyLedger) calls(t *testing.T) []pyCall {
	t.Helper()
	var calls []pyCall
	for _, e := range l.read(t).Of("call") {
		call := pyCall{Func: e.Task}
		if err := json.Unmarshal([]byte(e.Detail), &call); err != nil {
			t.Fatalf("ledger: %v: %v", e, err)
		}
		calls = append(calls, call)
	}
	return calls
}

func (l pyLedger) read(t *testing.T) ledger.Log {
	t.Helper()
	log, err := ledger.Read(string(l))
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// waitFor polls until ok holds, and fails the test when that takes longer than even a loaded machine needs.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	waitForAtMost(t, time.Minute, what, ok)
}

func waitForAtMost(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	if !becomes(limit, ok) {
		t.Fatalf("waited %v for %s", limit, what)
	}
}

// becomes waits until something is so, and returns whether it is within a limit.
func becomes(limit time.Duration, ok func() bool) bool {
	late := time.After(limit)
	for began := time.Now(); !ok(); began = time.Now() {
		// Looking may mean reading a long ledger: it takes a fifth of a processor at most.
		select {
		case <-late:
			return ok()
		case <-time.After(max(5*time.Millisecond, 4*time.Since(began))):
		}
	}
	return true
}
