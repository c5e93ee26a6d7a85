package main

import (
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

	mu    sync.Mutex
	conns []net.Conn // closed by stop
}

// startProxy listens on a free port of the loopback interface. The round trip takes twice the delay longer.
func startProxy(target string, delay time.Duration) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, target: target, delay: delay}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go p.join(client)
		}
	}()
	return p, nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

// join connects a client with the target until one of them closes.
func (p *proxy) join(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, client, server)
	p.mu.Unlock()
	var group sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		group.Go(func() {
			forward(way[1], way[0], p.delay)
			client.Close()
			server.Close()
		})
	}
	group.Wait()
}

func (p *proxy) stop() {
	p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
}

// forward copies until src ends; each chunk is written delay after it was read.
func forward(dst io.Writer, src io.Reader, delay time.Duration) {
	type chunk struct {
		data []byte
		due  time.Time
	}
	chunks, written := make(chan chunk, 1024), make(chan struct{})
	go func() {
		defer close(written)
		sleep := preciseSleeper()
		var err error
		for c := range chunks { // also after an error: the reader must never wait
			if err == nil {
				sleep(time.Until(c.due))
				_, err = dst.Write(c.data)
			}
		}
	}()
	for {
		buffer := make([]byte, 32<<10)
		n, err := src.Read(buffer)
		if n > 0 {
			chunks <- chunk{buffer[:n], time.Now().Add(delay)}
		}
		if err != nil {
			break
		}
	}
	close(chunks)
	<-written
}
