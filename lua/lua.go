// Package lua has the scripts that Redis runs. README.md beside this file lists them and their keys.
package lua

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed *.lua include/*.lua
var files embed.FS

// Source returns the text of NAME.lua as Redis runs it: with the text of each include behind the line that names it. It
// panics if there is no such script or include.
func Source(name string) string {
	var text strings.Builder
	for line := range strings.Lines(read(name, name+".lua")) {
		text.WriteString(line)
		if args, ok := strings.CutPrefix(strings.TrimSpace(line), "--#include "); ok {
			text.WriteString(included(name, strings.Fields(args)))
		}
	}
	return text.String()
}

// included returns the body of the include that args names first. The further arguments, NAME=text, say what stands in
// place of its capital names. Its header, the comment at its top, is left out.
func included(script string, args []string) string {
	text := read(script, "include/"+args[0]+".lua")
	for strings.HasPrefix(text, "--") {
		_, text, _ = strings.Cut(text, "\n")
	}
	for _, arg := range args[1:] {
		name, value, _ := strings.Cut(arg, "=")
		text = strings.ReplaceAll(text, name, value)
	}
	return text
}

func read(script, file string) string {
	text, err := files.ReadFile(file)
	if err != nil {
		panic(fmt.Sprintf("delayed: script %s: expected the file lua/%s: %v", script, file, err))
	}
	return string(text)
}

// Names returns the names of all scripts.
func Names() (names []string) {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // the folder is in the program
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".lua"); ok {
			names = append(names, name)
		}
	}
	return names
}
