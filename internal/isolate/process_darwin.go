package isolate

import (
	"os"
	"syscall"
)

// attributes returns how children are started: as leaders of a process group.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitEnd does nothing: the group is killed a moment after its leader was reaped.
func awaitEnd(int) {}

// unread is not known.
func unread(*os.File) bool { return false }

// Supported reports that this system has isolation.
const Supported = true

// executable returns the binary of this process.
func executable() (string, error) { return os.Executable() }
