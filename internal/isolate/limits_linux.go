package isolate

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// limitMemory bounds the memory that this process may map for writing, beyond what it has. RLIMIT_DATA counts what was
// mapped, not what is resident, and Go maps 64 MiB at a time.
func limitMemory(more int64) error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	_, line, _ := strings.Cut(string(status), "VmData:")
	line, _, ok := strings.Cut(line, "kB")
	mapped, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil || !ok {
		return fmt.Errorf("delayed: /proc/self/status has no line VmData: %w", err)
	}
	const rlimitData = 2
	most := uint64(mapped<<10 + more) //nolint:gosec // both are positive
	return syscall.Setrlimit(rlimitData, &syscall.Rlimit{Cur: most, Max: most})
}
