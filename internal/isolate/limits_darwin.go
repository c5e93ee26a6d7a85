package isolate

import "errors"

// limitMemory fails: macOS does not enforce limits of memory.
func limitMemory(int64) error { return errors.New("delayed: Isolation.Memory needs Linux") }
