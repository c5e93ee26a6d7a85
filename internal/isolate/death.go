package isolate

import (
	"errors"
	"fmt"
	"strings"
)

// ErrDied is wrapped by the errors of jobs whose child has died.
var ErrDied = errors.New("delayed: child process died")

// ErrNotBegun is wrapped by the error of a job whose context ended before a child was ready for it.
var ErrNotBegun = errors.New("no child process was ready")

// DeathError is the error of a job whose child has died.
type DeathError struct {
	Pid    int
	Status string // as os.ProcessState writes it, such as "exit status 2" or "signal: killed"
	Why    string // what this package did to the child before; "" if it did nothing
	Output string // the beginning and the end of what it wrote to its standard error during the job
	Stacks string // of its goroutines, if it could write them, the one of the job first

	unread bool // it died of itself before it had read the job
}

// Error implements error. It is one line: the last line of the output that shows why a Go program ends, if there is
// one.
func (d *DeathError) Error() string {
	text := fmt.Sprintf("%v: process %d: %s", ErrDied, d.Pid, d.Status)
	if d.Why != "" {
		text += "; " + d.Why
	}
	if reason := d.reason(); reason != "" {
		text += ": " + reason
	}
	return text
}

const (
	keptStacks = 4 << 10 // bytes of stacks in a report
	keptOutput = 2 << 10 // bytes of the beginning of the output there, and as many of its end
)

// Report returns the stacks and the output, shortened.
func (d *DeathError) Report() string {
	stacks, out := d.Stacks, d.Output
	if len(stacks) > keptStacks {
		stacks = stacks[:keptStacks] + "\n..."
	}
	if len(out) > 2*keptOutput {
		out = out[:keptOutput] + "\n...\n" + out[len(out)-keptOutput:]
	}
	switch {
	case out == "":
		return stacks
	case stacks == "":
		return strings.ToValidUTF8("standard error:\n"+out, "")
	}
	return strings.ToValidUTF8(stacks+"\n\nstandard error:\n"+out, "")
}

// Unwrap returns ErrDied.
func (d *DeathError) Unwrap() error { return ErrDied }

// reason returns the line of the output by which Go's runtime reports why it ends the process.
func (d *DeathError) reason() string {
	for line := range strings.Lines(d.Output) {
		line = strings.TrimSpace(line)
		for _, start := range []string{"fatal error: ", "panic: ", "runtime: out of memory", "SIG"} {
			if strings.HasPrefix(line, start) {
				return line
			}
		}
	}
	return ""
}
