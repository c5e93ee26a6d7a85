package childproc

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
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
