package semaphore_test

import (
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/childproc"
	"github.com/godelayed/delayed/semaphore"
)

// startHolder starts a process that holds the only place of the test's semaphore.
func (b *bench) startHolder() *childproc.Process {
	b.T.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SEMAPHORE_HOLDER="+b.Server.URL(), "SEMAPHORE_NAME="+b.Name)
	p, err := childproc.Start(cmd)
	b.Must(err)
	b.T.Cleanup(p.Kill)
	return p
}

// holdForEver is that process.
func holdForEver(url, name string) {
	rdb, err := delayed.Dial(url)
	if err == nil {
		var s *semaphore.Semaphore
		s, err = semaphore.New(rdb, semaphore.Config{Name: name, Places: 1, Lease: time.Second})
		if err == nil {
			_, err = s.TryAcquire(bg)
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	select {}
}
