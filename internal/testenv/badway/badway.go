// Package badway provides a proxy for tests whose connections can be slow, break off or carry no
// bytes.
package badway

import (
	"net"
	"sync"
	"testing"
	"time"
)

// A Fault affects connections, including open ones. The zero value has no effect.
type Fault struct {
	Up      bool          // affects bytes to the server, not answers
	Latency time.Duration // delay of each byte
	Rate    int           // limit in bytes per second
	Cut     int           // the connection ends after this number of bytes
	Hang    bool          // bytes never arrive, and the connection ends with the fault
	Reset   bool          // the connection is reset
}

// A Way is a proxy to a server. Its methods are safe for concurrent use.
type Way struct {
	listener net.Listener
	server   string

	mu      sync.Mutex
	fault   Fault
	changed chan struct{} // closed when fault changes
	open    map[*net.TCPConn]bool
	group   sync.WaitGroup
}

// To starts a proxy to a server, HOST:PORT. The end of the test closes it.
func To(t testing.TB, server string) *Way {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &Way{listener: listener, server: server, changed: make(chan struct{}), open: map[*net.TCPConn]bool{}}
	w.group.Go(w.accept)
	t.Cleanup(w.close)
	return w
}

// Endpoint returns the URL of the proxy.
func (w *Way) Endpoint() string { return "http://" + w.listener.Addr().String() }

// Set replaces the fault.
func (w *Way) Set(f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = f
	close(w.changed)
	w.changed = make(chan struct{})
	if f.Reset {
		for c := range w.open {
			_ = c.SetLinger(0)
			_ = c.Close()
		}
	}
}

func (w *Way) accept() {
	for {
		c, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.group.Go(func() { w.connect(c.(*net.TCPConn)) })
	}
}

// connect copies between a client and the server until one of them is done.
func (w *Way) connect(client *net.TCPConn) {
	defer client.Close()
	c, err := net.Dial("tcp", w.server)
	if err != nil {
		return
	}
	server := c.(*net.TCPConn)
	defer server.Close()
	if !w.keep(client, server) {
		return
	}
	defer w.forget(client, server)
	var group sync.WaitGroup
	group.Go(func() { w.pass(client, server, true) })
	w.pass(server, client, false)
	group.Wait()
}

// keep reports whether connections may be used, and remembers them to close later.
func (w *Way) keep(all ...*net.TCPConn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault.Reset {
		_ = all[0].SetLinger(0)
		return false
	}
	for _, c := range all {
		w.open[c] = true
	}
	return true
}

func (w *Way) forget(all ...*net.TCPConn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range all {
		delete(w.open, c)
	}
}

// pass copies one direction, and closes both connections at its end.
func (w *Way) pass(from, to *net.TCPConn, up bool) {
	defer from.Close()
	defer to.Close()
	buffer, passed := make([]byte, 4096), 0
	for {
		n, err := from.Read(buffer)
		part := buffer[:n]
		f := w.faultOf(up)
		if f.Hang {
			<-f.ended
			return
		}
		if f.Cut > 0 && passed+n > f.Cut {
			_, _ = to.Write(part[:max(0, f.Cut-passed)])
			return
		}
		time.Sleep(f.Latency)
		if f.Rate > 0 {
			time.Sleep(time.Duration(n) * time.Second / time.Duration(f.Rate))
		}
		if _, failed := to.Write(part); failed != nil || err != nil {
			return
		}
		passed += n
	}
}

// faultOf returns the fault of a direction.
func (w *Way) faultOf(up bool) current {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault.Up != up {
		return current{}
	}
	return current{w.fault, w.changed}
}

// A current fault ends when the channel is closed.
type current struct {
	Fault
	ended chan struct{}
}

func (w *Way) close() {
	_ = w.listener.Close()
	w.Set(Fault{Reset: true})
	w.group.Wait()
}
