//go:build !cgo && unix

package crash

import (
	"os"
	"syscall"
)

// InC sends the signal of such a fault, because this program has no C code.
func InC() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
	select {}
}
