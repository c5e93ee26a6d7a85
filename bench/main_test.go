package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"
)

// TestMain lets the test binary serve as driver, since drivers are this program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "test-server" { // of TestServerDiesWithBench
		s, err := startServer(aofOff)
		if err != nil {
			panic(err)
		}
		fmt.Println(s.cmd.Process.Pid, s.dir)
		time.Sleep(time.Minute)
		os.Exit(1)
	}
	if os.Getenv("BENCH_DRIVER") != "" {
		if err := dispatch(context.Background(), os.Args[1:], os.Stderr); err != nil {
			os.Stderr.WriteString("bench: " + err.Error() + "\n")
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestDispatch(t *testing.T) {
	for _, args := range [][]string{nil, {"nothing"}, {"bench ", "-h"}} {
		if err := dispatch(t.Context(), args, io.Discard); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
	if err := dispatch(t.Context(), []string{"help"}, io.Discard); err != nil {
		t.Error(err)
	}
}
