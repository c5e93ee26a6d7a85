package call

import (
	"strings"

	"github.com/godelayed/delayed/inspect"
)

// Match returns the functions that a name means: their path, an alias, or the end of one behind a separator.
func Match(functions []inspect.Function, name string) (matching []*inspect.Function) {
	for i := range functions {
		f := &functions[i]
		for _, path := range append([]string{f.Path}, f.Aliases...) {
			rest, ok := strings.CutSuffix(path, name)
			if ok && (rest == "" || strings.ContainsAny(rest[len(rest)-1:], "/.:")) {
				matching = append(matching, f)
				break
			}
		}
	}
	return matching
}
