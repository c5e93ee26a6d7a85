// Package buildinfo says of which versions this program is made.
package buildinfo

import "runtime/debug"

// Info has what the linker has noted; what it has not is "unknown".
type Info struct {
	Library  string // version of this module
	Program  string // version of the program's module
	Revision string // of the program's repository; "" if that is unknown
}

// Read returns the versions of this program.
func Read() Info {
	const path = "github.com/godelayed/delayed"
	i := Info{Library: "unknown", Program: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return i
	}
	i.Program = info.Main.Version
	if info.Main.Path == path {
		i.Library = i.Program
	}
	for _, dep := range info.Deps {
		if dep.Path == path {
			i.Library = dep.Version
		}
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			i.Revision = s.Value
		}
	}
	return i
}

// String returns version and revision of the program.
func (i Info) String() string {
	if i.Revision == "" {
		return i.Program
	}
	return i.Program + " revision " + i.Revision
}
