// declmove moves declarations within a package from file to file.
//
//	declmove -dir DIR [-after Name | -before Name] target.go Name Type.method Type+ file.go:Name …
//	declmove -dir DIR -batch FILE      lines "target.go Name …", # comments
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"mover/core"
)

func main() {
	dir := flag.String("dir", ".", "directory of the package")
	after := flag.String("after", "", "declaration of the target file behind which they go (else its end)")
	before := flag.String("before", "", "declaration of the target file before which they go")
	batch := flag.String("batch", "", "file with one move a line")
	dry := flag.Bool("n", false, "write nothing")
	flag.Parse()
	var moves []core.Move
	if *batch != "" {
		b, err := os.ReadFile(*batch)
		die(err)
		for _, l := range strings.Split(string(b), "\n") {
			l, _, _ = strings.Cut(l, "#")
			if f := strings.Fields(l); len(f) > 1 {
				moves = append(moves, core.Move{Target: f[0], Names: f[1:]})
			}
		}
	} else {
		if flag.NArg() < 2 {
			fmt.Fprintln(os.Stderr, "usage: declmove -dir DIR target.go Name Type.method Type+ …")
			os.Exit(2)
		}
		moves = []core.Move{{Target: flag.Arg(0), Names: flag.Args()[1:], After: *after, Before: *before}}
	}
	told, err := core.DeclMove(*dir, moves, *dry)
	for _, t := range told {
		fmt.Println(t)
	}
	die(err)
}

func die(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
