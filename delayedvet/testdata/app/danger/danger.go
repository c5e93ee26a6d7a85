// Package danger registers functions that give tasks the machine.
package danger

import (
	"database/sql"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/godelayed/delayed"

	"github.com/godelayed/delayed/workermain"
)

var remove = delayed.Func(os.RemoveAll, delayed.Name("remove")) // want `os.RemoveAll: expected a function that is safe with whatever arguments a task has, found one that gives the machine to everybody`

func run(name string) error { return exec.Command(name).Run() }

func register(w *delayed.Worker, db *sql.DB, f *os.File) (err error) {
	err = w.Register(exec.Command) // want `exec.Command: expected a function that is safe`
	err = w.Register(os.Remove)    // want `os.Remove`
	err = w.Register(syscall.Kill) // want `syscall.Kill`
	err = w.Register(strings.ToUpper)
	err = w.Register(run)
	err = w.Register(remove)
	err = w.RegisterMethods(db) // want `database/sql.DB: expected a receiver whose methods are safe`
	err = w.RegisterMethods(f)  // want `os.File`
	return err
}

var _ = workermain.Config{Functions: []any{os.Rename, run}} // want `os.Rename`
