package main

import (
	"encoding/json"
	"os"
	"strings"
)

// unit is what go vet writes about the package to analyze into the file that it names last. The names are those of
// unitchecker.Config in golang.org/x/tools/go/analysis/unitchecker.
type unit struct {
	ImportPath  string
	ImportMap   map[string]string // import paths in the source, to those of packages
	PackageVetx map[string]string // packages, to the files of their facts
	VetxOnly    bool              // the package is only imported by others
	VetxOutput  string            // where its facts go
}

// skip reports whether the arguments ask for the facts of a package that cannot have any, because neither the package
// nor those that it imports use package delayed, and writes them: an empty file. go vet asks for the facts of all
// packages of a program, also of the standard library, and to parse and check them takes most of the time of its first
// run.
func skip(args []string) bool {
	if len(args) == 0 || !strings.HasSuffix(args[len(args)-1], ".cfg") {
		return false
	}
	data, err := os.ReadFile(args[len(args)-1]) //nolint:gosec // go vet names the file
	var u unit
	if err != nil || json.Unmarshal(data, &u) != nil {
		return false // the analyzer reports what is wrong
	}
	if !u.VetxOnly || u.VetxOutput == "" || u.ImportPath == root {
		return false
	}
	for _, path := range u.ImportMap {
		if path == "unsafe" || path == "C" {
			continue
		}
		facts, err := os.Stat(u.PackageVetx[path])
		if err != nil || facts.Size() > 0 {
			return false
		}
	}
	return os.WriteFile(u.VetxOutput, nil, 0o600) == nil
}

// root is the package whose users have facts.
const root = "github.com/godelayed/delayed"
