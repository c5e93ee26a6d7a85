package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
)

// versionView is what this command was built from.
type versionView struct {
	Version  string `json:"version"`
	Library  string `json:"library"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version",
		RunE: func(*cobra.Command, []string) error { return output(a, readVersion(), printVersion) },
	}
}

func readVersion() *versionView {
	v := &versionView{
		Version: "unknown", Library: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version = info.Main.Version
	for _, dep := range info.Deps {
		if dep.Path == "github.com/godelayed/delayed" {
			v.Library = dep.Version
		}
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value
		}
	}
	return v
}

func printVersion(p *term.Page, v *versionView) {
	text := "delayed " + v.Version
	if v.Revision != "" {
		text += " revision " + v.Revision
	}
	p.Say(term.C(text + " (library " + v.Library + ", " + v.Go + " " + v.Platform + ")"))
}
