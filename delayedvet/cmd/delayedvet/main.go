// Command delayedvet checks calls of functions that are delayed. It runs under go vet, which caches what it finds:
//
//	go install github.com/godelayed/delayed/delayedvet/cmd/delayedvet@latest
//	go vet -vettool="$(which delayedvet)" ./...
//
// or by itself, with -fix to apply the fixes that are certain:
//
//	delayedvet ./...
//
// delayedvet help lists its flags.
package main

import (
	"os"

	"golang.org/x/tools/go/analysis/singlechecker"

	"github.com/godelayed/delayed/delayedvet"
)

func main() {
	if !skip(os.Args[1:]) {
		singlechecker.Main(delayedvet.Analyzer)
	}
}
