package delayed

import (
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/godelayed/delayed/internal/schedule"
)

// maxEntryName bounds the name of a periodic entry, in bytes. The ids of its tasks begin with it.
const maxEntryName = 128

// checkEntryName says why a name cannot be an entry's.
func checkEntryName(name string) error {
	switch {
	case name == "":
		return errors.New("delayed: periodic entry without a name: give it one that stays")
	case len(name) > maxEntryName:
		return fmt.Errorf("delayed: name of a periodic entry of %d bytes: expected at most %d", len(name), maxEntryName)
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

// entryLock is the name of the lock that tasks of an entry hold.
func entryLock(name string) string { return schedule.LockPrefix + name }

// tickID is the id of the task of a tick.
func tickID(name string, tick time.Time) string {
	return name + "@" + strconv.FormatInt(tick.UnixMilli(), 10)
}
