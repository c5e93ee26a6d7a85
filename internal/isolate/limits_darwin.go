package isolate

import "errors"

// limitMemory fails: macOS does not enforce limits of memory.
func limitMemory(int64) error { return errors.New("delayed: Isolation.Memory needs Linux") }

// group is a control group, which only Linux has.
type group string

func delegatedGroups() (any, error)  { return nil, nil }
func newGroup(Limits) (group, error) { return "", nil }
func (group) add(int) error          { return nil }
func (group) bound(int64) error      { return nil }
func (group) close() bool            { return false }
