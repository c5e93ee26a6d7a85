package delayedvet_test

import (
	"path/filepath"
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/delayedvet"
)

// The library has the names that Renamed suggests.
var _ = []any{
	(*delayed.Store)(nil), delayed.ConflictFail, delayed.ConflictSkip, delayed.ConflictReplace, delayed.Archive,
	(*delayed.Worker).OnEvent,
	delayed.WorkerConfig{Limits: delayed.WorkerLimits{}},
}

// Old names are found in packages that do not compile because of them, also if they import others of that kind; each
// file .golden has what the fixes make of them.
func TestRenamed(t *testing.T) {
	t.Parallel()
	dir, err := filepath.Abs("testdata/renamed")
	if err != nil {
		t.Fatal(err)
	}
	analysistest.RunWithSuggestedFixes(t, dir, delayedvet.Renamed, "app", "app/setup")
}
