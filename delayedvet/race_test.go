//go:build race

package delayedvet_test

import (
	"os"
	"os/exec"
	"testing"
)

// childVar says that go test was called by TestWithoutRaceDetector.
const childVar = "DELAYED_VET_TEST"

// TestWithoutRaceDetector runs the tests of this module without the race detector: nothing in them is concurrent, and
// types are checked ten times as fast.
func TestWithoutRaceDetector(t *testing.T) {
	if os.Getenv(childVar) != "" {
		t.Fatal("go test without -race uses the race detector: look for -race in GOFLAGS")
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "./...")
	cmd.Env = append(os.Environ(), childVar+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
