//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServerDiesWithBench kills a process that has started a server; the server must not outlive it.
func TestServerDiesWithBench(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "test-server")
	cmd.Env = append(os.Environ(), "BENCH_DRIVER=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	var dir string
	if _, err := fmt.Sscan(line, &pid, &dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the server %d is not running: %v", pid, err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		// A process that has ended but that nobody has waited for yet counts as dead.
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("the server outlived its parent by 10 s")
		}
	}
}

// TestProxy sends a megabyte through a proxy with and without a delay, and back.
func TestProxy(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); c.Close() }()
		}
	}()
	for _, delay := range []time.Duration{time.Microsecond, 10 * time.Millisecond} {
		p, err := startProxy(echo.Addr().String(), delay)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", p.addr())
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := c.Write([]byte("a\n")); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(c).ReadString('\n'); line != "a\n" || err != nil {
			t.Fatal(line, err)
		}
		if took := time.Since(start); took < 2*delay {
			t.Errorf("a round trip took %v with a delay of %v", took, delay)
		}
		sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
		go func() { _, _ = c.Write(sent) }()
		got := make([]byte, len(sent))
		if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, sent) {
			t.Errorf("a megabyte came back changed: %v", err)
		}
		p.stop()
		if _, err := c.Read(got); err == nil {
			t.Error("a connection outlived its proxy")
		}
		c.Close()
	}
}
