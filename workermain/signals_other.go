//go:build !unix

package workermain

import (
	"os"
	"syscall"
)

// orders are the signals that a worker program handles. Windows sends SIGTERM when the console closes or the user logs
// off.
var orders = map[os.Signal]order{
	os.Interrupt:    {"interrupt", stop},
	syscall.SIGTERM: {"SIGTERM", stop},
}

const signalHelp = `
Signals: Ctrl-C and Ctrl-Break stop, a second one exits at once.
`
