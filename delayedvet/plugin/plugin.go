// Package plugin makes delayedvet a linter of golangci-lint. Importing it registers the linter; README.md of the module
// shows the configuration.
package plugin

import (
	"fmt"

	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/godelayed/delayed/delayedvet"
)

func init() { register.Plugin("delayedvet", newLinter) }

// linter is the analyzers with their settings, of which there are none.
type linter struct{}

func newLinter(settings any) (register.LinterPlugin, error) {
	if _, err := register.DecodeSettings[struct{}](settings); err != nil {
		return nil, fmt.Errorf("delayedvet: expected no settings: %w", err)
	}
	return linter{}, nil
}

// BuildAnalyzers returns the analyzers.
func (linter) BuildAnalyzers() ([]*analysis.Analyzer, error) {
	return []*analysis.Analyzer{delayedvet.Analyzer, delayedvet.Renamed}, nil
}

// GetLoadMode returns the mode with types.
func (linter) GetLoadMode() string { return register.LoadModeTypesInfo }
