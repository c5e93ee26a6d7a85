package main

import (
	"fmt"
	"os/exec"
	"runtime/debug"
	"strings"
)

// moduleVersion returns the version of a module that this program is built with.
func moduleVersion(path string) (string, error) {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return strings.TrimPrefix(m.Version, "v"), nil
			}
		}
	}
	return "", fmt.Errorf("this program was built without module %s; build it with `go build` in bench", path)
}

// commit returns the revision that this program was built from, "" when it was built outside a checkout.
func commit() string {
	out, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return ""
	}
	revision := strings.TrimSpace(string(out))
	if changed, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no",
		"..").Output(); err == nil && len(changed) > 0 {
		revision += " with changes"
	}
	return revision
}
