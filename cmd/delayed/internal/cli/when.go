package cli

import (
	"time"

	"github.com/godelayed/delayed/inspect/call"
)

// duration is the value of a flag: a duration as Go writes it, with days and weeks besides: 90s, 1d12h, 2w. It is never
// negative.
type duration time.Duration

func (d *duration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

func (d *duration) Type() string { return "duration" }

func (d *duration) Set(s string) error {
	v, err := call.ParseSpan(s)
	*d = duration(v)
	return err
}

// within returns an error unless a number of a flag or argument lies between bounds.
func within(name string, n, least, most int) error {
	if n < least || n > most {
		return usagef("%s %d: expected %d to %d", name, n, least, most)
	}
	return nil
}

// moment is the value of a flag: a time.
type moment struct{ time.Time }

func (m *moment) String() string {
	if m.IsZero() {
		return ""
	}
	return m.Format(time.RFC3339)
}

func (m *moment) Type() string { return "time" }

func (m *moment) Set(s string) error {
	t, err := call.ParseTime(s, time.Local)
	m.Time = t
	return err
}
