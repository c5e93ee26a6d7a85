package wire

import (
	"fmt"
	"reflect"
	"strings"
)

// FormatError reports why some bytes are not a message, or not a value within the limits. It never shows strings or
// binary data.
type FormatError struct {
	Offset int    // of the first wrong byte, counted from the start of the message or of the value given to Check
	Want   string // what was expected there
	Got    string // what was found
}

// Error implements error.
func (e *FormatError) Error() string {
	return fmt.Sprintf("malformed message at byte %d: expected %s, found %s", e.Offset, e.Want, e.Got)
}

// ValueError reports which part of a value does not fit the Go type. It shows numbers and the keys of structs, but no
// strings, map keys or binary data: arguments may be secret.
type ValueError struct {
	Where string // path from the value to the part, like .Items[3].Name; empty for the value itself
	Want  string // what the type takes
	Got   string // what was found
}

// Error implements error.
func (e *ValueError) Error() string {
	if e.Where == "" {
		return fmt.Sprintf("expected %s, found %s", e.Want, e.Got)
	}
	return fmt.Sprintf("at %s: expected %s, found %s", e.Where, e.Want, e.Got)
}

// in prepends one step to the path. Each caller adds its own step as the error passes through it.
func (e *ValueError) in(step string) *ValueError {
	e.Where = step + e.Where
	return e
}

// UnsupportedError reports that values of a type cannot be sent, and what to use instead.
type UnsupportedError struct {
	Type  reflect.Type // the type asked for
	Where string       // path from it to the part that cannot be sent, like .Items[].Done; empty for the type itself
	Part  reflect.Type // the type of that part
	Hint  string       // why, and what to use instead
}

// Error implements error.
func (e *UnsupportedError) Error() string {
	var s strings.Builder
	s.WriteString(e.Part.String())
	switch {
	case e.Where != "":
		fmt.Fprintf(&s, " (in %s at %s)", e.Type, e.Where)
	case e.Part != e.Type:
		fmt.Fprintf(&s, " (in %s)", e.Type)
	}
	s.WriteString(" cannot travel in a task: ")
	s.WriteString(e.Hint)
	return s.String()
}
