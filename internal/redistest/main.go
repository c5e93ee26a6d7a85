package redistest

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Main runs the tests of a package and returns the exit code for its TestMain. It stops the shared server, and fails
// when goroutines of this module are left.
func Main(m *testing.M) int {
	code := m.Run()
	StopShared()
	if code == 0 {
		code = leaked()
	}
	return code
}

// leaked waits for goroutines that are about to end and reports those that stay.
func leaked() int {
	for deadline := time.Now().Add(5 * time.Second); ; <-time.After(10 * time.Millisecond) {
		buf := make([]byte, 1<<20)
		buf = buf[:runtime.Stack(buf, true)]
		var left []string
		for g := range strings.SplitSeq(string(buf), "\n\n") {
			if strings.Contains(g, "godelayed/delayed") && !strings.Contains(g, "TestMain") {
				left = append(left, g)
			}
		}
		if len(left) == 0 {
			return 0
		}
		if time.Now().After(deadline) {
			fmt.Fprintf(os.Stderr, "goroutines left after all tests:\n%s\n", strings.Join(left, "\n\n"))
			return 1
		}
	}
}

// sideBySide is how many of the parallel tests run at a time at least, once SideBySide was called.
const sideBySide = 8

// SideBySide lets eight parallel tests run at a time, or more with more processors, unless -parallel says otherwise:
// for packages whose tests mostly wait. Call it in TestMain before m.Run.
func SideBySide() {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set(strconv.Itoa(max(sideBySide, runtime.GOMAXPROCS(0)))); err != nil {
			panic(err)
		}
	}
}
