// Package limits is for tests that measure how much time, processor time or memory something takes. Such a test fails
// on a machine with other work although nothing is wrong, so that it measures only for `make limits`, which sets
// DELAYED_LIMITS=1. The package imports nothing of this module: the tests of every package can use it.
package limits

import (
	"os"
	"testing"
)

// on is set by `make limits`.
var on = os.Getenv("DELAYED_LIMITS") == "1"

// On reports whether limits are checked. A test may then also have more to do.
func On() bool { return on }

// Only skips a test that does nothing but measure, unless limits are checked.
func Only(t testing.TB) {
	t.Helper()
	if !on {
		t.Skip("it measures; `make limits` runs it")
	}
}

// Errorf reports that something took more than it may. Unless limits are checked, it only logs that.
func Errorf(t testing.TB, format string, args ...any) {
	t.Helper()
	if on {
		t.Errorf(format, args...)
	} else {
		t.Logf(format, args...)
	}
}
