package delayedvet_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/delayedvet"
	"github.com/godelayed/delayed/delayedvet/testdata/agree"
)

// The library refuses what the analyzer reports, and accepts all else. The table has no calls that are accepted and all
// the same reported, such as those of a duration for a number.
func TestAgreesWithTheLibrary(t *testing.T) {
	t.Parallel()
	found := analyze(t, "./testdata/agree")
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close() // what is accepted fails because nobody listens there
	rdb, err := delayed.Dial("redis://" + closed.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	lines := sourceLines(t)
	refused := 0
	for i, call := range agree.Calls {
		w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{Queues: delayed.Strict{"q"}})
		if err != nil {
			t.Fatal(err)
		}
		err = call(delayed.NewQueue("q", rdb), w)
		var network *net.OpError
		accepted := err == nil || errors.As(err, &network)
		line, end := lineOf(call), len(lines)
		if i+1 < len(agree.Calls) {
			end = lineOf(agree.Calls[i+1])
		}
		var texts []string
		for n := line; n < end; n++ {
			texts = append(texts, found[n]...)
		}
		if accepted != (len(texts) == 0) {
			t.Errorf("call %d, line %d: %s\n\tthe library: %v\n\tthe analyzer: %q", i, line,
				strings.TrimSpace(strings.Join(lines[line-1:end-1], "\n\t")), err, texts)
		}
		if !accepted {
			refused++
		}
	}
	if accepted := len(agree.Calls) - refused; refused < 100 || accepted < 70 {
		t.Errorf("only %d calls are refused and %d accepted", refused, accepted)
	}
}

// lineOf returns where a call of the table begins.
func lineOf(call agree.Call) int {
	pc := reflect.ValueOf(call).Pointer()
	_, line := runtime.FuncForPC(pc).FileLine(pc)
	return line
}

func sourceLines(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "agree", "agree.go"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

// analyze returns what the analyzer says about a package of this module, by line.
func analyze(t *testing.T, pattern string) map[int][]string {
	t.Helper()
	mode := packages.LoadSyntax | packages.NeedDeps | packages.NeedModule // dependencies from their source, for facts
	pkgs, err := packages.Load(&packages.Config{Mode: mode}, pattern)
	if err != nil || packages.PrintErrors(pkgs) > 0 {
		t.Fatalf("loading %s: %v", pattern, err)
	}
	graph, err := checker.Analyze([]*analysis.Analyzer{delayedvet.Analyzer}, pkgs, nil)
	if err != nil {
		t.Fatal(err)
	}
	found := map[int][]string{}
	for _, action := range graph.Roots {
		if action.Err != nil {
			t.Fatal(fmt.Errorf("analyzing %s: %w", pattern, action.Err))
		}
		for _, d := range action.Diagnostics {
			line := action.Package.Fset.Position(d.Pos).Line
			found[line] = append(found[line], d.Message)
		}
	}
	return found
}
