//go:build !linux

package childproc

import (
	"bytes"
	"fmt"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// dieWithParent has nothing to offer outside Linux: cleanups end the children, a killed test binary leaves them behind.
func dieWithParent() *syscall.SysProcAttr { return nil }

func isStopped(pid int) (bool, error) {
	state, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return false, fmt.Errorf("ps: %w", err)
	}
	return bytes.HasPrefix(bytes.TrimSpace(state), []byte("T")), nil
}

// Waited is not counted outside Linux.
func (p *Process) Waited() (waited time.Duration, ok bool) { return 0, false }
