//go:build unix

package childproc

import "syscall"

const sigStop, sigCont = syscall.SIGSTOP, syscall.SIGCONT
