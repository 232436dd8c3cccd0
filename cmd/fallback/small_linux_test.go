package main

import (
	"bufio"
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/fixtures/graph"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
)

// The limits that the docs promise for the released binary.
const (
	maxBinary = 21 << 20
	maxMemory = 64 << 20 // under load, with the default cache
	maxStart  = 100 * time.Millisecond
)

// TestReleased builds the binary as docs/fallback.md says. The first time that takes a
// minute: it needs servers too, and runs at night.
func TestReleased(t *testing.T) {
	servers.Nightly(t)
	s := servers.Start(t, servers.MinIO)
	binary := filepath.Join(t.TempDir(), "fallback")
	build := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	t.Run("is small and static", func(t *testing.T) { isSmallAndStatic(t, binary) })
	t.Run("starts in a blink", func(t *testing.T) { startsInABlink(t, binary, s) })
	t.Run("takes little memory", func(t *testing.T) { takesLittleMemory(t, binary, s) })
	t.Run("takes little memory for slow clients", func(t *testing.T) { takesLittleForSlowClients(t, binary, s) })
}

func isSmallAndStatic(t *testing.T, binary string) {
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MiB", float64(info.Size())/(1<<20))
	if info.Size() > maxBinary {
		t.Errorf("the binary: got %d bytes, want at most %d", info.Size(), maxBinary)
	}
	file, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, program := range file.Progs {
		if program.Type == elf.PT_INTERP || program.Type == elf.PT_DYNAMIC {
			t.Errorf("the binary: got a segment %v, want a static binary", program.Type)
		}
	}
	if file.Section(".symtab") != nil || file.Section(".debug_info") != nil || file.Section(".zdebug_info") != nil {
		t.Error("it is not stripped")
	}
}

// The best of some starts counts: other tests run on the machine.
func startsInABlink(t *testing.T, binary string, s *servers.Server) {
	bucket := published(t, s, afero.FromIOFS{FS: fixtures.Demo()})
	best := time.Hour
	for range 5 {
		begun := time.Now()
		p := run(t, binary, "--site=s3://"+bucket, "--endpoint="+s.Endpoint)
		waitFor(t, "it is not ready", func() bool { return status(t, p.base+"/readyz") == http.StatusOK })
		best = min(best, time.Since(begun))
		p.Signal(os.Interrupt)
		if got := p.wait(); got != command.Done {
			t.Errorf("exit status %d: %s", got, p.Stderr())
		}
	}
	t.Logf("ready after %v", best)
	if best > maxStart {
		t.Errorf("ready: got it after %v, want at most %v", best, maxStart)
	}
}

// The site does not fit into the cache, so that objects are evicted all the time.
func takesLittleMemory(t *testing.T, binary string, s *servers.Server) {
	const lists, accounts, connections, each = 500, 1000, 50, 150
	snapshot := afero.NewMemMapFs()
	_, err := graph.Write(context.Background(), graph.Options{Accounts: accounts, Lists: lists, Records: 300_000, Seed: 1},
		func(name string) (io.WriteCloser, error) { return snapshot.Create(name) })
	if err != nil {
		t.Fatal(err)
	}
	p := run(t, binary, "--site=s3://"+published(t, s, snapshot), "--endpoint="+s.Endpoint, "--metrics-addr=127.0.0.1:0")
	idle := p.memory("VmRSS")
	ids := tokenIDs(t, snapshot)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}, Timeout: patience}
	defer client.CloseIdleConnections()
	var group sync.WaitGroup
	begun := time.Now()
	for n := range connections {
		group.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(n)))
			for range each {
				list := ids[random.IntN(len(ids))]
				path := []string{
					"details", "records", "records", "records?includeTags=false", "badges",
					fmt.Sprintf("searchFollowing?limit=100&offset=%d", random.IntN(1000)), "searchFollowing?term=a",
				}[random.IntN(7)]
				if err := drain(client, p.base+"/api/v1/lists/"+list+"/"+path); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	took := time.Since(begun)
	_, metrics := get(t, p.metricsURL())
	cached := regexp.MustCompile(`(?m)^followpress_cache_bytes .*$`).FindString(metrics)
	most := p.memory("VmHWM")
	t.Logf("%d requests in %v: at most %.1f MiB, now %.1f MiB, %.1f MiB of them the binary's, at the start %.1f MiB, %s", connections*each, took,
		mib(most), mib(p.memory("VmRSS")), mib(p.memory("RssFile")), mib(idle), cached)
	if most > maxMemory {
		t.Errorf("%.1f MiB, want at most %.1f", mib(most), mib(maxMemory))
	}
}

// Clients that receive long answers slowly share one copy, or get a 503.
func takesLittleForSlowClients(t *testing.T, binary string, s *servers.Server) {
	const lists, records = 6, 50_000
	snapshot := afero.NewMemMapFs()
	writeLongLists(t, snapshot, lists, records)
	file := filepath.Join(t.TempDir(), "site.tar")
	if _, err := generator.ToPath(t.Context(), snapshot, file, generator.Options{NoSync: true}); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"bucket": {"--site=s3://" + published(t, s, snapshot), "--endpoint=" + s.Endpoint}, "tar": {"--site=" + file},
	} {
		for _, c := range []struct {
			name        string
			connections int
			path        func(n int) string
			all         bool // are answered
		}{
			{"one list", 50, func(int) string { return "1/records?includeTags=false" }, true},
			{"one list", 400, func(int) string { return "1/records?includeTags=false" }, true},
			{"all lists", 400, func(n int) string {
				return fmt.Sprintf("%d/", 1+n%lists) + []string{"records", "records?includeTags=false", "searchFollowing?term=e"}[n%3]
			}, false},
		} {
			t.Run(fmt.Sprintf("%s, %s, %d connections", name, c.name, c.connections), func(t *testing.T) {
				p := run(t, binary, args...)
				answered := p.askSlowly(c.connections, c.path)
				limit := int64(maxMemory + c.connections*perConnection)
				t.Logf("at most %.1f MiB of %.1f, %d answers", mib(p.memory("VmHWM")), mib(limit), answered)
				if most := p.memory("VmHWM"); most > limit {
					t.Errorf("got %.1f MiB, want at most %.1f", mib(most), mib(limit))
				}
				if answered == 0 || c.all && answered != c.connections {
					t.Errorf("got %d answers, want %d", answered, c.connections)
				}
				if got := status(t, p.base+"/api/v1/lists/2/details"); got != http.StatusOK {
					t.Errorf("afterwards: got status %d, want 200", got)
				}
			})
		}
	}
}

// perConnection is the memory that the docs promise per connection.
const perConnection = 18 << 10

// askSlowly sends requests on many connections and reads only the head of each answer
// until all have begun or were refused. Then it reads some answers to the end. It
// counts the answers that are not refusals.
func (p *running) askSlowly(connections int, path func(n int) string) int {
	p.t.Helper()
	var answered atomic.Int64
	var begun, done sync.WaitGroup
	begun.Add(connections)
	for n := range connections {
		done.Go(func() {
			ready := sync.OnceFunc(begun.Done)
			defer ready()
			conn, err := net.Dial("tcp", strings.TrimPrefix(p.base, "http://"))
			if err != nil {
				p.t.Error(err)
				return
			}
			defer conn.Close()
			if err := errors.Join(conn.(*net.TCPConn).SetReadBuffer(16<<10), conn.SetDeadline(time.Now().Add(time.Minute))); err != nil {
				p.t.Error(err)
				return
			}
			fmt.Fprintf(conn, "GET /api/v1/lists/%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path(n))
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				p.t.Errorf("%s: %v", path(n), err)
				return
			}
			defer response.Body.Close()
			ready()
			begun.Wait()
			if response.StatusCode == http.StatusServiceUnavailable && response.Header.Get("Retry-After") != "" {
				return
			}
			answered.Add(1)
			if n >= 10 {
				return
			}
			if size, err := io.Copy(io.Discard, response.Body); err != nil || size != response.ContentLength || response.StatusCode != http.StatusOK {
				p.t.Errorf("%s: got status %d, %d bytes of %d, %v", path(n), response.StatusCode, size, response.ContentLength, err)
			}
		})
	}
	done.Wait()
	return int(answered.Load())
}

// writeLongLists writes a snapshot of a few lists with many records each.
func writeLongLists(t *testing.T, snapshot afero.Fs, lists, records int) {
	t.Helper()
	var list, record, account bytes.Buffer
	for n := range lists {
		fmt.Fprintf(&list, `{"token_id":"%d","owner":"0x%040x"}`+"\n", n+1, n+1)
		fmt.Fprintf(&account, `{"address":"0x%040x","primary_list":"%d"}`+"\n", n+1, n+1)
		for r := range records {
			fmt.Fprintf(&record, `{"token_id":"%d","version":1,"record_type":"address","data":"0x%040x","tags":["close","list%d"]}`+"\n", n+1, 1000+r, n)
		}
	}
	for name, body := range map[string][]byte{
		"meta.json": []byte(`{"format":1,"as_of":"2026-01-01T00:00:00Z"}`), "events.ndjson": nil, "badges.ndjson": nil,
		"lists.ndjson": list.Bytes(), "records.ndjson": record.Bytes(), "accounts.ndjson": account.Bytes(),
	} {
		if err := afero.WriteFile(snapshot, name, body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

func drain(client *http.Client, url string) error {
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

var tokenID = regexp.MustCompile(`"token_id":"(\d+)"`)

func tokenIDs(t *testing.T, snapshot afero.Fs) (ids []string) {
	t.Helper()
	rows, err := afero.ReadFile(snapshot, "lists.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range tokenID.FindAllSubmatch(rows, -1) {
		ids = append(ids, string(id[1]))
	}
	return ids
}

// memory returns the value of a line of the kernel's memory statistics of the process, in bytes.
func (p *running) memory(line string) int64 {
	p.t.Helper()
	account, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	if err != nil {
		p.t.Fatal(err)
	}
	for text := range strings.Lines(string(account)) {
		if value, found := strings.CutPrefix(text, line+":"); found {
			kib, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			if err != nil {
				p.t.Fatal(err)
			}
			return kib << 10
		}
	}
	p.t.Fatalf("no %s", line)
	return 0
}
