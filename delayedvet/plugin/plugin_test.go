package plugin

import (
	"strings"
	"testing"

	"github.com/golangci/plugin-module-register/register"

	"github.com/godelayed/delayed/delayedvet"
)

// golangci-lint finds the linter by its name, and gives it settings that it has none of.
func TestPlugin(t *testing.T) {
	t.Parallel()
	newPlugin, err := register.GetPlugin("delayedvet")
	if err != nil {
		t.Fatal(err)
	}
	l, err := newPlugin(nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := l.BuildAnalyzers()
	if err != nil || len(all) != 2 || all[0] != delayedvet.Analyzer || all[1] != delayedvet.Renamed {
		t.Errorf("analyzers %v, %v", all, err)
	}
	if mode := l.GetLoadMode(); mode != register.LoadModeTypesInfo {
		t.Errorf("load mode %s", mode)
	}
	_, err = newPlugin(map[string]any{"strict": true})
	if err == nil || !strings.Contains(err.Error(), "no settings") {
		t.Errorf("settings: %v", err)
	}
}
