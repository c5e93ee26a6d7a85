//go:build unix && !ackfirst

package itest_test

import (
	"context"
	"os/exec"
	"regexp"
	"testing"
	"time"
)

// TestKillNoticesLostTasks runs TestKill against workers that acknowledge tasks before they call the function. It must
// fail, and because tasks were lost, or TestKill would prove nothing.
func TestKillNoticesLostTasks(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "test", "-tags=ackfirst", "-count=1", "-run=^TestKill$",
		".").CombinedOutput()
	if err == nil {
		t.Fatalf("TestKill passes although tasks are acknowledged before they run:\n%s", out)
	}
	lost := regexp.MustCompile(`(?m)^ *kill_test\.go:\d+: \d+ of \d+ tasks were lost.*$`).Find(out)
	if lost == nil {
		t.Fatalf("expected TestKill to fail because tasks were lost, found: %v\n%s", err, out)
	}
	t.Logf("%s", lost)
}
