package main

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// proxy forwards connections and delivers what it reads after a delay, in each direction. It does not limit the
// bandwidth: it delays every byte by the same time, and no byte waits for others.
type proxy struct {
	listener net.Listener
	target   string
	delay    time.Duration

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
}

// startProxy listens on a free port of the loopback interface. The round trip takes twice the delay longer.
func startProxy(target string, delay time.Duration) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, target: target, delay: delay, conns: map[net.Conn]struct{}{}}
	go p.accept()
	return p, nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.join(client)
	}
}

// join connects a client with the target until one of them closes.
func (p *proxy) join(client net.Conn) {
	defer p.forget(client)
	if !p.keep(client) {
		return
	}
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer p.forget(server)
	if !p.keep(server) {
		return
	}
	var group sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		group.Go(func() {
			_ = forward(way[1], way[0], p.delay, preciseSleeper)
			way[0].Close()
			way[1].Close()
		})
	}
	group.Wait()
}

// keep remembers a connection for stop; it returns false if the proxy was stopped.
func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *proxy) forget(c net.Conn) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *proxy) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.listener.Close()
	for c := range p.conns {
		c.Close()
	}
}

// chunk is the result of one read.
type chunk struct {
	data []byte
	due  time.Time
}

// forward copies until src ends; each chunk is written delay after it was read. Without a delay one goroutine reads and
// writes. The one that waits calls sleeper for what it sleeps with.
func forward(dst io.Writer, src io.Reader, delay time.Duration, sleeper func() func(time.Duration)) error {
	if delay == 0 {
		// do not use splice, because forwarding with a delay cannot use it
		_, err := io.Copy(struct{ io.Writer }{dst}, struct{ io.Reader }{src})
		return err
	}
	chunks := make(chan chunk, 1024)
	failed := make(chan error, 1)
	go func() {
		sleep := sleeper()
		for c := range chunks {
			sleep(time.Until(c.due))
			if _, err := dst.Write(c.data); err != nil {
				failed <- err
				break
			}
		}
		for ok := true; ok; { // the reader must never wait for a writer that has failed
			_, ok = <-chunks
		}
		close(failed)
	}()
	var err error
	for err == nil {
		buffer := make([]byte, 32<<10)
		var n int
		n, err = src.Read(buffer)
		if n > 0 {
			chunks <- chunk{buffer[:n], time.Now().Add(delay)}
		}
	}
	close(chunks)
	if writeErr := <-failed; writeErr != nil {
		return writeErr
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
