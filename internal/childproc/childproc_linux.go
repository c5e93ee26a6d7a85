package childproc

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"time"
)

func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// isStopped reads the state letter of /proc/<pid>/stat, which follows the command's name in parentheses.
func isStopped(pid int) (bool, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false, err
	}
	i := bytes.LastIndexByte(stat, ')')
	if i < 0 || i+2 >= len(stat) {
		return false, fmt.Errorf("/proc/%d/stat: expected \"pid (name) state\", found %q", pid, stat)
	}
	return stat[i+2] == 'T', nil
}

// Waited returns how long the main thread of the child has been ready to run while the processors were busy with
// others. ok is false if the system does not count that.
func (p *Process) Waited() (waited time.Duration, ok bool) {
	var ran, delayed int64
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", p.PID()))
	if err != nil {
		return 0, false
	}
	if _, err := fmt.Sscan(string(stat), &ran, &delayed); err != nil {
		return 0, false
	}
	return time.Duration(delayed), true
}
