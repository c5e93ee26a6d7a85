package childproc

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestChildDiesWithItsParent(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CHILDPROC_TEST_PARENT=1")
	parent, err := Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(parent.Kill)
	await(t, "the child's id", func() bool { return strings.HasSuffix(parent.Output(), "\n") })
	pid, err := strconv.Atoi(strings.TrimSpace(parent.Output()))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the child should live: %v", err)
	}
	parent.Kill()
	await(t, "the child's end", func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}

func TestWaited(t *testing.T) {
	p := start(t, "while :; do :; done")
	if _, ok := p.Waited(); !ok {
		t.Skip("this kernel does not count how long processes wait")
	}
	// More busy loops than processors, so that each has to wait.
	for range 2 * runtime.NumCPU() {
		start(t, "while :; do :; done")
	}
	await(t, "the child to wait for a processor", func() bool {
		waited, ok := p.Waited()
		return ok && waited > 10*time.Millisecond
	})
}
