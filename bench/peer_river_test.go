package main

import (
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// TestRiver runs tasks through river on a PostgreSQL server of its own with each durability, and checks that nothing is
// left of the server.
func TestRiver(t *testing.T) {
	if _, err := postgresVersion(); err != nil {
		t.Skip(err)
	}
	for _, aof := range []string{aofOff, aofEverysec, aofAlways} {
		t.Run(aof, func(t *testing.T) {
			s, err := startRiver(aof)
			if err != nil {
				t.Fatal(err)
			}
			family := descendants(s.cmd.Process.Pid)
			if len(family) < 4 {
				t.Errorf("expected a shell, a server and its processes, found %d processes", len(family))
			}
			runRiver(t, s.addr)
			s.stop()
			awaitGone(t, family)
			if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
				t.Errorf("expected the server's folder to be gone, found %v", err)
			}
		})
	}
	if _, err := startRiver("sometimes"); err == nil {
		t.Error("an unknown durability was accepted")
	}
}

func runRiver(t *testing.T, addr string) {
	t.Helper()
	q, err := openRiver(addr, true)
	if err != nil {
		t.Fatal(err)
	}
	defer q.close()
	if err := q.enqueue(-1<<62, "one"); err != nil {
		t.Fatal(err)
	}
	if err := q.enqueueMany(1<<62, []string{"two", "two"}); err != nil {
		t.Fatal(err)
	}
	var ones, twos, all atomic.Int32
	done := make(chan struct{})
	stop, err := q.work(10, func(number int64, text string) {
		switch {
		case number == -1<<62 && text == "one":
			ones.Add(1)
		case number == 1<<62 && text == "two":
			twos.Add(1)
		}
		if all.Add(1) == 3 {
			close(done)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
	}
	if ones.Load() != 1 || twos.Load() != 2 {
		t.Errorf("expected 1 and 2 tasks, found %d and %d", ones.Load(), twos.Load())
	}
}
