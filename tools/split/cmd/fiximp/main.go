// fiximp runs goimports over files.
package main

import (
	"fmt"
	"os"

	"golang.org/x/tools/imports"
)

func main() {
	imports.LocalPrefix = "github.com/godelayed/delayed"
	for _, f := range os.Args[1:] {
		b, err := imports.Process(f, nil, nil)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		old, _ := os.ReadFile(f)
		if string(old) != string(b) {
			os.WriteFile(f, b, 0o644)
		}
	}
}
