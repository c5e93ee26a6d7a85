package schedule

import (
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// maxName bounds the name of a periodic entry, in bytes. The ids of its tasks begin with it.
const maxName = 128

// checkName returns an error if an entry cannot have that name.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("delayed: periodic entry without a name: give it one that stays")
	case len(name) > maxName:
		return fmt.Errorf("delayed: name of a periodic entry of %d bytes: expected at most %d", len(name), maxName)
	case name[0] == '@':
		return fmt.Errorf("delayed: periodic entry %q: a name does not begin with @", name)
	}
	for _, r := range name {
		if !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == utf8.RuneError {
			return fmt.Errorf("delayed: periodic entry %q: expected a name of printable characters without spaces",
				name)
		}
	}
	return nil
}
