package delayedvet_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/godelayed/delayed/delayedvet"
)

// Loading programs from their source makes garbage all the time: less often collected, it costs a third less.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// workspace returns the folder of the programs that tests check. analysistest loads them without the network, so what
// they import must be in the module cache.
var workspace = sync.OnceValues(func() (string, error) {
	dir, err := filepath.Abs("testdata/app")
	if err != nil {
		return "", err
	}
	list := exec.Command("go", "list", "-deps", "-test", "./...")
	list.Dir, list.Stderr = dir, os.Stderr
	list.Env = append(os.Environ(), "GOWORK=", "GOFLAGS=")
	return dir, list.Run()
})

func app(t *testing.T) string {
	t.Helper()
	dir, err := workspace()
	if err != nil {
		t.Fatalf("go list of the programs in testdata: %v", err)
	}
	return dir
}

// findings leaves out the facts, which only analyzers see, and that a file has no .golden: files of testdata need no
// comments about the former, and only the package fixes has the latter.
type findings struct{ *testing.T }

func (f findings) Errorf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fact := strings.Contains(text, ": unexpected fact: ")
	golden := strings.Contains(text, ".golden: no such file") && !strings.Contains(text, "fixes.go.golden")
	if !fact && !golden {
		f.Helper()
		f.Error(text)
	}
}

// TestAnalyzer expects a finding in each line of testdata/app that has a comment "// want", and no others. The fixes of
// testdata/app/fixes give what stands in its file .golden, which compiles. What is below testdata/app/blind was written
// from the documentation alone, so that the analyzer is not tested by its author's expectations only.
func TestAnalyzer(t *testing.T) {
	analysistest.RunWithSuggestedFixes(findings{t}, app(t), delayedvet.Analyzer, "./...")
}
