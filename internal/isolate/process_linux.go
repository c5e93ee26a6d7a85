package isolate

import (
	"os"
	"syscall"
	"unsafe"
)

// attributes returns how children are started: as leaders of a process group, and killed when the thread ends that has
// started them; see spawner.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitEnd waits until a child has ended, and leaves it a zombie, so that its process group keeps its number.
func awaitEnd(pid int) {
	const pPid, exited, noWait = 1, 4, 0x1000000
	var info [128]byte
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pPid, uintptr(pid), uintptr(unsafe.Pointer(&info)),
			exited|noWait, 0, 0)
		if errno != syscall.EINTR {
			return
		}
	}
}

// unread reports whether there are bytes in a pipe, of which this is the end for writing.
func unread(w *os.File) bool {
	var n int32
	raw, err := w.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCINQ, uintptr(unsafe.Pointer(&n)))
		})
	}
	return err == nil && n > 0
}

// Supported reports that this system has isolation.
const Supported = true

// executable is the binary of this process, also when its file was replaced or removed meanwhile, as deploys do.
func executable() (string, error) { return "/proc/self/exe", nil }
