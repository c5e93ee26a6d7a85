//go:build unix

package workermain

import (
	"os"
	"syscall"
)

// orders are the signals that a worker program handles.
var orders = map[os.Signal]order{
	syscall.SIGINT:  {"SIGINT", stop},
	syscall.SIGTERM: {"SIGTERM", stop},
	syscall.SIGHUP:  {"SIGHUP", stop},
	syscall.SIGTSTP: {"SIGTSTP", quiet},
	syscall.SIGUSR2: {"SIGUSR2", pause},
	syscall.SIGCONT: {"SIGCONT", resume},
	// Unhandled, it would kill the program in mid-task when the reader of its log goes away: in "worker | tee log",
	// Ctrl-C ends tee first.
	syscall.SIGPIPE: {"SIGPIPE", ignore},
}

const signalHelp = `
Signals: INT, TERM and HUP stop, a second one exits at once; TSTP claims no more tasks for good;
USR2 pauses, CONT resumes.
`
