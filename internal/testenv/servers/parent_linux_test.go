package servers_test

import (
	"fmt"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/testenv/process"
	"github.com/followpress/followpress/internal/testenv/servers"
)

func TestServersEndWhenTheirTestIsKilled(t *testing.T) {
	const inChild = "SERVERS_OF_A_TEST_THAT_IS_KILLED"
	if os.Getenv(inChild) != "" {
		for _, kind := range servers.Kinds() {
			fmt.Println(servers.Start(t, kind).Endpoint)
		}
		select {}
	}
	servers.Start(t, servers.VersityGW) // skips this test too if no servers are wanted
	// A killed test cannot clean up, so its folders are in a folder of this test.
	child := process.Start(t, process.Self(t, []string{inChild + "=1", "TMPDIR=" + t.TempDir()}, "-test.run=^"+t.Name()+"$"))
	var endpoints []string
	for n := range servers.Kinds() {
		endpoint, ok := child.Line(n)
		if !ok {
			t.Fatalf("server %d: got no endpoint, want one", n)
		}
		if endpoints = append(endpoints, endpoint); !answers(endpoint) {
			t.Errorf("%s before the test is killed: got no answer, want one", endpoint)
		}
	}
	child.Signal(syscall.SIGKILL)
	if _, killed := child.Wait(); !killed {
		t.Error("the end of the test: got no kill, want one")
	}
	for _, endpoint := range endpoints {
		for begun := time.Now(); answers(endpoint); time.Sleep(10 * time.Millisecond) {
			if time.Since(begun) > 10*time.Second {
				t.Fatalf("%s after the kill: got an answer, want none", endpoint)
			}
		}
	}
}

func answers(endpoint string) bool {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	response, err := client.Get(endpoint)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return true
}
