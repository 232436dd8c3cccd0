package loopback_test

import (
	"net"
	"testing"

	"github.com/followpress/followpress/beam/internal/loopback"
)

func TestMain(m *testing.M) { loopback.Main(m) }

func TestNothingOutsideIsReachable(t *testing.T) {
	if !loopback.Inside() {
		t.Skip("needs namespaces, which this system does not let this user make: run it as root")
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	if len(interfaces) != 1 || interfaces[0].Name != "lo" {
		t.Errorf("interfaces: got %v, want lo", interfaces)
	}
}

func TestThePortOfTheWorkerPoolIsFreeAndWorks(t *testing.T) {
	if !loopback.Inside() {
		t.Skip("needs namespaces, which this system does not let this user make: run it as root")
	}
	listener, err := net.Listen("tcp", ":50000")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, address := range []string{"127.0.0.1:50000", "localhost:50000"} {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = connection.Close()
	}
}
