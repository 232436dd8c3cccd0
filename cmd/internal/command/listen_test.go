package command

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

// A port alone listens on this machine only. An invalid address fails with an error that names the
// expected form.
func TestListen(t *testing.T) {
	for _, address := range []string{"0", "127.0.0.1:0", "localhost:0"} {
		l, err := Listen("addr", address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if at := l.Addr().(*net.TCPAddr); !at.IP.IsLoopback() || at.Port == 0 {
			t.Errorf("%s: got %v, want a port of this machine only", address, at)
		}
		port := l.Addr().(*net.TCPAddr).Port
		if _, err := Listen("addr", fmt.Sprint(port)); err == nil || !strings.Contains(err.Error(), "choose another address with --addr") {
			t.Errorf("port %d twice: got %v, want an error that names the flag", port, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, wrong := range []string{"nowhere", "127.0.0.1", "[::1", "65536", "80 80", "-1"} {
		if _, err := Listen("metrics-addr", wrong); err == nil || !strings.Contains(err.Error(), "--metrics-addr") || strings.Contains(err.Error(), "chooses") {
			t.Errorf("%q: got %v, want an error with the flag and what it wants", wrong, err)
		}
	}
}
