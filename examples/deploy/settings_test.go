package deploy

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// settings are the environment variables of a worker.
type settings map[string]string

// duration returns a setting that is a duration.
func (s settings) duration(t *testing.T, name string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s[name])
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}

// stopping is how long a worker needs at most from TERM to its end: a few seconds more than it gives handlers.
func (s settings) stopping(t *testing.T) time.Duration {
	t.Helper()
	return s.duration(t, "DELAYED_GRACE") + s.duration(t, "DELAYED_CANCEL_GRACE") + 10*time.Second
}

// maxMemory returns DELAYED_MAX_MEMORY in bytes.
func (s settings) maxMemory(t *testing.T) int64 {
	t.Helper()
	return bytes(t, strings.TrimSuffix(s["DELAYED_MAX_MEMORY"], "iB"))
}

// bytes parses 768M and 1G.
func bytes(t *testing.T, size string) int64 {
	t.Helper()
	units := map[string]int64{"M": 1 << 20, "G": 1 << 30}
	unit := units[size[max(len(size)-1, 0):]]
	n := int64(0)
	for _, digit := range size[:max(len(size)-1, 0)] {
		n = 10*n + int64(digit-'0')
	}
	if unit == 0 || n <= 0 {
		t.Fatalf("%q: expected a size such as 768M", size)
	}
	return n * unit
}

// accepted checks that a worker program takes the settings: it refuses unknown variables and wrong values.
func (s settings) accepted(t *testing.T) {
	t.Helper()
	worker := filepath.Join(t.TempDir(), "worker")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", worker, "./worker")
	build.Dir = ".." // the module of the examples
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := func(env settings) (string, error) {
		cmd := exec.CommandContext(t.Context(), worker, "-functions")
		for name, value := range env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run(s); err != nil || !strings.Contains(out, "mail.Welcome") {
		t.Errorf("%v\n%s", err, out)
	}
	var exit *exec.ExitError
	if out, err := run(settings{"DELAYED_NONSENSE": "1"}); !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("an unknown variable is no error: %v\n%s", err, out)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
