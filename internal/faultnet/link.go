package faultnet

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	chunkSize = 32 << 10
	// chunksUnderWay bounds what one direction of a connection holds back: 32 MiB.
	chunksUnderWay = 1024
)

// link is one forwarded connection.
type link struct {
	proxy          *Proxy
	client, server *net.TCPConn
	number         int64       // of the connection, in the order in which they were made
	lossy          atomic.Bool // bytes have been swallowed
	stranded       atomic.Bool // everything under way is swallowed from now on
	cutOnce        sync.Once
	ended          chan struct{} // closed by cut

	mu    sync.Mutex // protects the following fields
	asked bool       // a request has been begun and nothing of its reply forwarded
	fault Fault      // of the reply to come
	delay time.Duration
}

// chunk is something read from one side.
type chunk struct {
	bytes []byte
	read  time.Time
}

// run forwards both directions and returns when both have ended.
func (l *link) run() {
	var wg sync.WaitGroup
	up, down := make(chan chunk, chunksUnderWay), make(chan chunk, chunksUnderWay)
	wg.Go(func() { l.read(l.client, up) })
	wg.Go(func() { l.read(l.server, down) })
	wg.Go(func() { l.write(l.server, up, l.onRequest) })
	wg.Go(func() { l.write(l.client, down, l.onReply) })
	wg.Wait()
	l.client.Close()
	l.server.Close()
}

// cut resets both sides.
func (l *link) cut() {
	l.cutOnce.Do(func() {
		close(l.ended)
		resetConn(l.client)
		resetConn(l.server)
	})
}

// read passes on what from sends until it ends.
func (l *link) read(from *net.TCPConn, to chan<- chunk) {
	defer close(to)
	for {
		buf := make([]byte, chunkSize)
		n, err := from.Read(buf)
		if n > 0 {
			select {
			case to <- chunk{buf[:n], time.Now()}:
			case <-l.ended:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// write writes chunks to one side, as late as they should be, and closes that direction after the last. meet applies
// faults to a chunk and reports whether to write it.
func (l *link) write(to *net.TCPConn, chunks <-chan chunk, meet func([]byte) bool) {
	broken := false
	for c := range chunks {
		if !l.pass(c) || !meet(c.bytes) || broken {
			continue
		}
		// When the receiver has gone, the sender still gets rid of its bytes, as with a real network.
		_, err := to.Write(c.bytes)
		broken = err != nil
	}
	// The end, too, waits until the network works.
	l.pass(chunk{})
	_ = to.CloseWrite()
}

// pass waits until a chunk may go on and reports whether it does.
func (l *link) pass(c chunk) bool {
	for {
		mode, latency, changed := l.proxy.state()
		if l.stranded.Load() {
			mode = swallow
		}
		switch mode {
		case swallow:
			if len(c.bytes) > 0 {
				l.lossy.Store(true)
				return false
			}
		case forward:
			if left := latency - time.Since(c.read); len(c.bytes) > 0 && left > 0 {
				if !l.wait(left) {
					return false
				}
				continue // the mode may have changed
			}
			return true
		case hold:
		}
		select {
		case <-changed:
		case <-l.ended:
			return false
		}
	}
}

// onRequest decides the fate of a request when its first chunk is forwarded.
func (l *link) onRequest(b []byte) bool {
	l.mu.Lock()
	begins := !l.asked
	l.asked = true
	l.mu.Unlock()
	if !begins {
		return true
	}
	fault, delay := l.proxy.decide(b)
	switch fault {
	case DropRequest:
		l.proxy.counters.byFault[fault].Add(1)
		l.cut()
		return false
	case DelayRequest:
		l.proxy.counters.byFault[fault].Add(1)
		return l.wait(delay)
	default: // met with the reply
	}
	l.mu.Lock()
	l.fault, l.delay = fault, delay
	l.mu.Unlock()
	return true
}

// onReply does to the first chunk of a reply what was decided with its request.
func (l *link) onReply([]byte) bool {
	l.mu.Lock()
	fault, delay := l.fault, l.delay
	l.asked, l.fault = false, None
	l.mu.Unlock()
	switch fault {
	case DropReply:
		l.proxy.counters.byFault[fault].Add(1)
		l.cut()
		return false
	case DelayReply:
		l.proxy.counters.byFault[fault].Add(1)
		return l.wait(delay)
	default: // met with the request
	}
	return true
}

// wait waits for d and reports whether the link still stands.
func (l *link) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.ended:
		return false
	}
}
