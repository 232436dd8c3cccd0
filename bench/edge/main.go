// Command edge measures nginx and Varnish, as cmd/edge configures them, before a
// bucket: requests a second beside nginx serving the files, and how many requests
// their caches answer. `make bench-edge` builds what it needs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/bench/internal/measure"
	"github.com/followpress/followpress/site"
)

func main() {
	snapshot := flag.String("snapshot", "", "folder of the snapshot; none makes a synthetic one")
	bin := flag.String("bin", "", "folder with the built commands generate and edge")
	objects := flag.Int("objects", measure.Objects, "size of the synthetic site")
	flag.Parse()
	if err := run(context.Background(), *snapshot, *bin, *objects); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// A bench keeps what the parts of a run share.
type bench struct {
	work     string
	bucket   *httptest.Server
	requests atomic.Int64 // to the bucket
	lists    []string
	table    measure.Table
}

func run(ctx context.Context, snapshot, bin string, objects int) (err error) {
	b := &bench{}
	if b.work, err = os.MkdirTemp("", "followpress-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.work)) }()
	// Workers of nginx run as another user, who must reach the site.
	if err := os.Chmod(b.work, 0o755); err != nil {
		return err
	}
	if snapshot == "" {
		snapshot = b.path("snapshot")
		if err := measure.Snapshot(ctx, snapshot, objects); err != nil {
			return err
		}
	}
	if err := command(ctx, filepath.Join(bin, "generate"), "--snapshot", snapshot, "--out", b.path("site")); err != nil {
		return err
	}
	entries, err := os.ReadDir(b.path("site/api/v1/lists"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		b.lists = append(b.lists, e.Name())
	}
	b.bucket = httptest.NewServer(http.HandlerFunc(b.serveObject))
	defer b.bucket.Close()

	plain, stop, err := b.startPlain(ctx)
	if err != nil {
		return err
	}
	defer stop()
	for _, kind := range []string{"nginx", "varnish"} {
		if err := b.measure(ctx, bin, kind, plain); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	fmt.Printf("\n%s", &b.table)
	return nil
}

func (b *bench) path(name string) string { return filepath.Join(b.work, name) }

// serveObject is the bucket.
func (b *bench) serveObject(w http.ResponseWriter, r *http.Request) {
	b.requests.Add(1)
	body, err := os.ReadFile(filepath.Join(b.path("site"), filepath.Clean("/"+r.URL.Path)))
	if err != nil {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", site.RouteDetails.Route().CacheControl)
	w.Header().Set("ETag", `"`+site.Sum(body).String()+`"`)
	_, _ = w.Write(body) // an edge that is gone is noticed elsewhere
}

const rounds = 3

// measure measures one kind of edge.
func (b *bench) measure(ctx context.Context, bin, kind, plain string) error {
	address, err := freeAddr()
	if err != nil {
		return err
	}
	dir := b.path(kind)
	if err := command(ctx, filepath.Join(bin, "edge"), "--kind", kind, "--site", b.path("site"), "--bucket-url", b.bucket.URL,
		"--out", dir, "--listen", address, "--cache-dir", b.path("cache-of-"+kind)); err != nil {
		return err
	}
	stop, err := b.startEdge(ctx, kind, dir, address)
	if err != nil {
		return err
	}
	defer stop()
	script, err := b.writeScript()
	if err != nil {
		return err
	}
	if _, err := load(ctx, "http://"+address, script, "1s"); err != nil { // warm
		return err
	}
	p, err := measure.Middle(rounds, func(int) (p measure.Pair, err error) {
		if p.Other, err = load(ctx, "http://"+plain, script, "5s"); err != nil {
			return p, err
		}
		p.Ours, err = load(ctx, "http://"+address, script, "5s")
		return p, err
	})
	if err != nil {
		return err
	}
	b.table.Row(kind+": details of 1,000 lists, warm, 50 connections / nginx serving files",
		fmt.Sprintf("%.0f/s", p.Ours), fmt.Sprintf("%.0f/s", p.Other), p.Ratio(), "≥ 0.8")
	return b.hits(kind, address)
}

// hits asks for details of all lists, some much more often than others, with
// parameters that mean nothing. Each list is asked for once before.
func (b *bench) hits(kind, address string) error {
	if err := ask(address, len(b.lists), func(i int) string { return b.lists[i] }); err != nil {
		return err
	}
	const requests = 100_000
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 1, uint64(len(b.lists)-1))
	paths := make([]string, requests)
	for i := range paths {
		paths[i] = b.lists[zipf.Uint64()]
	}
	before := b.requests.Load()
	if err := ask(address, requests, func(i int) string { return paths[i] }); err != nil {
		return err
	}
	ratio := 1 - float64(b.requests.Load()-before)/requests
	b.table.Row(kind+": hit ratio, Zipf mix of all lists with query noise, warm", fmt.Sprintf("%.4f", ratio), "", 0, "≥ 0.99")
	return nil
}

// ask sends n requests, 16 at a time.
func ask(address string, n int, list func(i int) string) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16, DisableCompression: true}}
	defer client.CloseIdleConnections()
	var next atomic.Int64
	var group errgroup.Group
	for range 16 {
		group.Go(func() error {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				response, err := client.Get(fmt.Sprintf("http://%s/api/v1/lists/%s/details?utm_source=%x&_=%d", address, list(i), rand.Uint64(), i))
				if err != nil {
					return err
				}
				if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
					return fmt.Errorf("list %s: status %d, %w", list(i), response.StatusCode, err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

const (
	plainConfig = `worker_processes 2; daemon off; pid %[1]s/plain.pid; error_log %[1]s/plain.log;
events { worker_connections 1024; }
http { access_log off; default_type application/json; server { listen %[2]s; root %[1]s/site; } }
`
	edgeConfig = `load_module /usr/lib/nginx/modules/ngx_http_js_module.so;
worker_processes 2; daemon off; pid nginx.pid; error_log nginx.log; pcre_jit on;
events { worker_connections 1024; }
http { access_log off; include followpress.conf; }
`
)

// startPlain starts nginx over the files.
func (b *bench) startPlain(ctx context.Context) (address string, stop func(), err error) {
	if address, err = freeAddr(); err != nil {
		return "", nil, err
	}
	config := b.path("plain.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, plainConfig, b.work, address), 0o644); err != nil {
		return "", nil, err
	}
	stop, err = start(ctx, address, "nginx", "-c", config)
	return address, stop, err
}

func (b *bench) startEdge(ctx context.Context, kind, dir, address string) (stop func(), err error) {
	if kind == "varnish" {
		return start(ctx, address, "varnishd", "-F", "-n", filepath.Join(dir, "work"), "-a", address, "-f", filepath.Join(dir, "followpress.vcl"), "-s", "malloc,1g", "-j", "none")
	}
	config := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(config, []byte(edgeConfig), 0o644); err != nil {
		return nil, err
	}
	return start(ctx, address, "nginx", "-p", dir, "-c", config)
}

// writeScript makes wrk ask for the details of a thousand lists in turns.
func (b *bench) writeScript() (string, error) {
	var script strings.Builder
	script.WriteString("local paths = {\n")
	for _, list := range b.lists[:min(1000, len(b.lists))] {
		fmt.Fprintf(&script, "\"/api/v1/lists/%s/details\",\n", list)
	}
	script.WriteString("}\nlocal all = {}\nlocal n = 0\n" +
		"init = function() for i, p in ipairs(paths) do all[i] = wrk.format(nil, p) end end\n" +
		"request = function() n = n % #all + 1; return all[n] end\n")
	name := b.path("details.lua")
	return name, os.WriteFile(name, []byte(script.String()), 0o644)
}

var perSecond = regexp.MustCompile(`Requests/sec:\s+([\d.]+)`)

// load gives the requests per second that wrk reaches.
func load(ctx context.Context, base, script, duration string) (float64, error) {
	output, err := exec.CommandContext(ctx, "wrk", "-t2", "-c50", "-d"+duration, "-s", script, base).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("wrk: %w\n%s", err, output)
	}
	match := perSecond.FindSubmatch(output)
	if match == nil || strings.Contains(string(output), "Non-2xx") {
		return 0, fmt.Errorf("wrk %s:\n%s", base, output)
	}
	return strconv.ParseFloat(string(match[1]), 64)
}

func command(ctx context.Context, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Stderr = os.Stderr
	return c.Run()
}

// start starts a server and waits until it listens.
func start(ctx context.Context, address, name string, args ...string) (stop func(), err error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("%w: make bench-edge installs it", err)
	}
	stop = func() {
		_ = c.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = c.Wait()
	}
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(20 * time.Millisecond) {
		if connection, err := net.Dial("tcp", address); err == nil {
			return stop, connection.Close()
		}
	}
	stop()
	return nil, fmt.Errorf("%s does not listen at %s", name, address)
}

func freeAddr() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
