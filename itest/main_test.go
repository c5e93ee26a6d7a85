//go:build unix

package itest_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/itest/procs"
)

// TestMain is also where the children start, see package procs.
func TestMain(m *testing.M) {
	procs.RunChild()
	redistest.SideBySide()
	code := m.Run()
	redistest.StopShared()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines were left behind:", err)
			code = 1
		}
	}
	os.Exit(code)
}
