//go:build linux

package isolate

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
)

var sink [][]byte

// runJob does what the words of a job say.
func runJob(j Job) {
	words := strings.Fields(string(j.Body))
	answer := func(v string) { j.Answer([]byte(v)) }
	switch words[0] {
	case "echo":
		answer(strings.Join(words[1:], " "))
	case "pid":
		answer(strconv.Itoa(os.Getpid()))
	case "report":
		for _, word := range words[1:] {
			_ = j.Report([]byte(word))
		}
		answer("reported")
	case "exit":
		os.Exit(3)
	case "goexit":
		defer answer("gone")
		runtime.Goexit()
	case "panic":
		go func() { panic("beside") }()
		select {}
	case "overflow":
		debug.SetMaxStack(16 << 20)
		answer(strconv.Itoa(deep(0)))
	case "allocate":
		for {
			b := make([]byte, 16<<20)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			sink = append(sink, b)
		}
	case "segv":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		select {}
	case "wait":
		<-j.Context.Done()
		answer(context.Cause(j.Context).Error())
	case "spin":
		_ = j.Report(nil)
		spin()
	case "compute":
		spin()
	case "sleep":
		_ = j.Report(nil)
		select {}
	case "stubborn": // ends only when it gets SIGTERM, which does not end its process
		signals := make(chan os.Signal, 1)
		signal.Reset(syscall.SIGTERM)
		signal.Notify(signals, syscall.SIGTERM)
		_ = j.Report(nil)
		<-signals
		answer("told")
	case "signals": // that a service manager sends
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGTSTP, syscall.SIGTERM} {
			_ = syscall.Kill(os.Getpid(), sig)
		}
		<-term
		answer("goes on")
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
		_ = j.Report(nil)
		spin()
	case "stopped":
		_ = j.Report(nil)
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		select {}
	case "close":
		_ = j.Report(nil)
		for fd := range 10 {
			_ = syscall.Close(fd)
		}
		select {}
	case "babble":
		n, _ := strconv.Atoi(words[1])
		os.Stderr.WriteString("first\n" + strings.Repeat("x", n) + "\nlast\n")
		os.Exit(1) //nolint:gocritic // nothing is deferred in this case
	case "child":
		cmd := exec.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			answer(err.Error())
			return
		}
		answer(strconv.Itoa(cmd.Process.Pid))
	case "hoard": // in a process of another group and session, which takes memory without end
		answer(fmt.Sprint(exec.Command("setsid", "--wait", "tail", "/dev/zero").Run()))
	case "leave": // a process of another group and session behind
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			answer(err.Error())
			return
		}
		answer(strconv.Itoa(cmd.Process.Pid))
	case "descriptors":
		entries, _ := os.ReadDir("/proc/self/fd")
		var open []string
		for _, e := range entries {
			target, _ := os.Readlink("/proc/self/fd/" + e.Name())
			open = append(open, target)
		}
		answer(strings.Join(open, " "))
	case "limit":
		answer(strconv.FormatInt(debug.SetMemoryLimit(-1), 10))
	case "environment":
		answer(os.Getenv(envChild))
	}
}

var spun int

// spin never returns, and calls nothing.
func spin() {
	for n := 0; ; n++ {
		spun = n
	}
}

func deep(n int) int {
	var pad [1024]byte
	pad[n%1024] = 1
	return deep(n+1) + int(pad[0]) //nolint:staticcheck // the stack is meant to overflow
}
