package main

import (
	"fmt"
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
