//go:build unix

// Package procs starts the test binary again, as a worker or a producer in a process of its own that can be killed and
// stopped.
package procs

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/godelayed/delayed/internal/childproc"
)

// Environment variables that make a test binary a child.
const (
	roleVariable   = "ITEST_ROLE"
	configVariable = "ITEST_CONFIG"
)

var roles = map[string]func(ctx context.Context, config []byte) error{}

// Role is a task of a child process. T is its configuration, which is sent as JSON.
type Role[T any] struct {
	name string
}

// Define makes a role; call it to initialize a package variable. run gets a context that ends with SIGTERM. The child
// exits with code 0 when run returns nil, otherwise with 1 after printing the error.
func Define[T any](name string, run func(context.Context, T) error) Role[T] {
	if roles[name] != nil {
		panic("procs: two roles are named " + name)
	}
	roles[name] = func(ctx context.Context, raw []byte) error {
		var config T
		if err := json.Unmarshal(raw, &config); err != nil {
			return err
		}
		return run(ctx, config)
	}
	return Role[T]{name}
}

// RunChild runs the role and exits if this process is a child. Call it first in TestMain.
func RunChild() {
	name := os.Getenv(roleVariable)
	if name == "" {
		return
	}
	run := roles[name]
	if run == nil {
		fmt.Fprintf(os.Stderr, "procs: no role is named %q\n", name)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := run(ctx, []byte(os.Getenv(configVariable)))
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Start starts a child that does not outlive the test. If the test fails, it logs what the child printed.
func (r Role[T]) Start(t testing.TB, config T) *childproc.Process {
	t.Helper()
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatalf("procs: configuration of %s: %v", r.name, err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatalf("procs: %v", err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program)
	cmd.Env = append(os.Environ(), roleVariable+"="+r.name, configVariable+"="+string(raw),
		// The race detector waits for a second at the end otherwise.
		"GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=10")
	p, err := childproc.Start(cmd)
	if err != nil {
		t.Fatalf("procs: starting %s: %v", r.name, err)
	}
	t.Cleanup(func() {
		p.Kill()
		if strings.Contains(p.Output(), "WARNING: DATA RACE") {
			t.Errorf("%s, %s, found a data race", r.name, p.Describe())
		}
		if t.Failed() {
			t.Logf("%s, %s, printed:\n%s", r.name, p.Describe(), tailOf(p.Output(), 4000))
		}
	})
	return p
}

func tailOf(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "[…]" + s[len(s)-n:]
}
