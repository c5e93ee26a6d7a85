package delayedvet_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/godelayed/delayed/delayedvet"
)

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

// findings leaves out the facts, which only analyzers see: files of testdata need no comments about them.
type findings struct{ *testing.T }

func (f findings) Errorf(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !strings.Contains(text, ": unexpected fact: ") {
		f.Helper()
		f.Error(text)
	}
}

// Each comment "// want" in testdata/app expects a finding in its line, and there must be no others. What is below
// testdata/app/blind was written from the documentation alone, so that the analyzer is not tested by its author's
// expectations only.
func TestAnalyzer(t *testing.T) {
	analysistest.Run(findings{t}, app(t), delayedvet.Analyzer, "./...")
}

// The fixes of testdata/app/fixes give what stands in its file .golden, which compiles.
func TestFixes(t *testing.T) {
	analysistest.RunWithSuggestedFixes(findings{t}, app(t), delayedvet.Analyzer, "./fixes")
}
