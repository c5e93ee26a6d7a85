package isolate

import (
	"encoding/json"
	"fmt"
	"time"
)

// Limits bound what one child may use.
type Limits struct {
	// Memory is how many bytes a child may allocate beyond what it has after its set-up; 0: any number.
	Memory int64 `json:"memory,omitempty"`
	// CPU is how much processor time a job may use, rounded up to seconds; 0: any.
	CPU time.Duration `json:"cpu,omitempty"`
}

// envChild is the environment variable by which a process knows that it is a child.
const envChild = "GODELAYED_CHILD"

// invitation is the content of the environment variable.
type invitation struct {
	Version int    `json:"version"`
	Limits  Limits `json:"limits"`
}

// invitationVersion is that of the frames. Parent and child are the same binary, so they agree, unless a program starts
// another one with its own environment.
const invitationVersion = 1

func (i invitation) String() string {
	b, err := json.Marshal(i)
	if err != nil {
		panic(err) // a struct of numbers
	}
	return string(b)
}

// parseInvitation reads the environment variable of this process. pipes: it has got the pipes of a child.
func parseInvitation(text string, pipes bool) (i invitation, err error) {
	err = json.Unmarshal([]byte(text), &i)
	if err != nil || i.Version != invitationVersion || !pipes {
		return i, fmt.Errorf("delayed: the environment variable %s is %q, and this process was not started by a "+
			"worker: expected that only package delayed sets it, for its child processes; unset it", envChild, text)
	}
	return i, nil
}
