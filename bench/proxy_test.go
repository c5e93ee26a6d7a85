package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestForwardDelays checks the delay with a synthetic clock: all bytes arrive exactly when they should.
func TestForwardDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, source := io.Pipe()
		sink, writer := io.Pipe()
		go func() {
			_ = forward(writer, reader, 5*time.Millisecond, func() func(time.Duration) { return time.Sleep })
			writer.Close()
		}()
		start := time.Now()
		go func() {
			for range 3 {
				_, _ = source.Write([]byte("x"))
				time.Sleep(time.Millisecond)
			}
			source.Close()
		}()
		buffer := make([]byte, 8)
		for i := range 3 {
			if n, err := sink.Read(buffer); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			if at, want := time.Since(start), time.Duration(5+i)*time.Millisecond; at != want {
				t.Errorf("chunk %d came after %v, expected %v", i, at, want)
			}
		}
		if _, err := sink.Read(buffer); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	})
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
	for _, delay := range []time.Duration{0, 10 * time.Millisecond} {
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
		p.stop()
	}
}
