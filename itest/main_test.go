//go:build unix

package itest_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/itest/procs"
)

// sideBySide is how many of the parallel tests run at a time at least, unless -parallel says otherwise. They mostly
// wait, so it may be more than there are processors.
const sideBySide = 8

// TestMain is also where the children start, see package procs.
func TestMain(m *testing.M) {
	procs.RunChild()
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set(strconv.Itoa(max(sideBySide, runtime.GOMAXPROCS(0)))); err != nil {
			panic(err)
		}
	}
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
