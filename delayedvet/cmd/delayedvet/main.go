// Command delayedvet checks calls of functions that are delayed. It runs under go vet, which caches what it finds:
//
//	go install github.com/godelayed/delayed/delayedvet/cmd/delayedvet@latest
//	go vet -vettool="$(which delayedvet)" ./...
//
// or by itself, with -fix to apply the fixes that are certain, also in packages that do not compile because they use
// names of package delayed from before 0.1.0:
//
//	delayedvet -fix ./...
//
// delayedvet help lists its flags.
package main

import (
	"os"

	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/godelayed/delayed/delayedvet"
)

func main() {
	if !skip(os.Args[1:]) {
		multichecker.Main(delayedvet.Analyzer, delayedvet.Renamed)
	}
}
