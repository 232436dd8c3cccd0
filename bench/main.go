// Command bench measures the commands beside the tools that people would use
// instead, on one machine in one run, and prints a table. `make bench` builds
// what it needs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/followpress/followpress/bench/internal/measure"
)

func main() {
	snapshot := flag.String("snapshot", "", "folder of the snapshot; none makes a synthetic one of the size of Epinions")
	bin := flag.String("bin", "", "folder with the built commands generate and fallback")
	work := flag.String("work", "", "folder to work in; none makes a temporary one")
	flag.Parse()
	if err := run(context.Background(), *snapshot, *bin, *work); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// A bench keeps the figures of a run.
type bench struct {
	bin, work, snapshot string
	table               measure.Table
}

func run(ctx context.Context, snapshot, bin, work string) (err error) {
	if work == "" {
		if work, err = os.MkdirTemp("", "followpress-bench-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	}
	b := &bench{bin: bin, work: work, snapshot: snapshot}
	if b.snapshot == "" {
		b.snapshot = b.path("snapshot")
		if err := measure.Snapshot(ctx, b.snapshot, measure.Objects); err != nil {
			return err
		}
	}
	for _, part := range []func(context.Context) error{b.folder, b.tar, b.requests, b.search} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("\n%s", &b.table)
	return nil
}

func (b *bench) path(name string) string { return filepath.Join(b.work, name) }

// rounds is how often two things are measured in turns: machines are noisy, and
// the round with the middle ratio is what counts.
const rounds = 3

// folder measures folders. Every round writes new ones and nothing is removed
// before the end: file systems are slow for a while after removing so much.
func (b *bench) folder(ctx context.Context) error {
	var memory float64
	fresh, err := measure.Middle(rounds, func(round int) (p measure.Pair, err error) {
		site := b.siteName(round)
		usage, err := b.generate(ctx, site)
		if err != nil {
			return p, err
		}
		memory, p.Ours = max(memory, usage.Memory), usage.Seconds
		p.Other, err = timed(ctx, "cp", "-r", b.path(site), b.path("copy-of-"+site))
		return p, err
	})
	if err != nil {
		return err
	}
	again, err := measure.Middle(rounds, func(round int) (p measure.Pair, err error) {
		usage, err := b.generate(ctx, b.siteName(round))
		return measure.Pair{Ours: usage.Seconds, Other: fresh.Ours}, err
	})
	if err != nil {
		return err
	}
	b.table.Row("generate to a fresh folder / `cp -r`", measure.Seconds(fresh.Ours), measure.Seconds(fresh.Other), fresh.Ratio(), "≤ 0.8")
	b.table.Row("generate over an unchanged site / first run", measure.Seconds(again.Ours), measure.Seconds(again.Other), again.Ratio(), "≤ 0.25")
	b.table.Row("peak memory of generate to a folder", fmt.Sprintf("%.0f MiB", memory), "", 0, "≤ 256 MiB")
	return nil
}

// siteName is the folder of a round; the first one's is served later.
func (b *bench) siteName(round int) string {
	if round == 0 {
		return "site"
	}
	return fmt.Sprintf("site-%d", round)
}

func (b *bench) tar(ctx context.Context) error {
	p, err := measure.Middle(rounds, func(round int) (p measure.Pair, err error) {
		usage, err := b.generate(ctx, fmt.Sprintf("site-%d.tar", round))
		if err != nil {
			return p, err
		}
		p.Ours = usage.Seconds
		p.Other, err = timed(ctx, "tar", "cf", b.path(fmt.Sprintf("other-%d.tar", round)), "-C", b.path("site"), ".")
		return p, err
	})
	b.table.Row("generate to a tar / `tar cf`", measure.Seconds(p.Ours), measure.Seconds(p.Other), p.Ratio(), "≤ 0.5")
	return err
}

func (b *bench) generate(ctx context.Context, out string) (measure.Usage, error) {
	return measure.Run(exec.CommandContext(ctx, filepath.Join(b.bin, "generate"), "--snapshot", b.snapshot, "--out", b.path(out)))
}

func timed(ctx context.Context, name string, args ...string) (float64, error) {
	usage, err := measure.Run(exec.CommandContext(ctx, name, args...))
	return usage.Seconds, err
}

const nginxConfig = `worker_processes 2; daemon off; pid %[1]s/nginx.pid; error_log %[1]s/nginx.log;
events { worker_connections 1024; }
http { access_log off; default_type application/json; server { listen %[2]s; root %[1]s/site; } }
`

// requests compares details of one list, which the handler then has in its cache,
// with nginx serving the file.
func (b *bench) requests(ctx context.Context) error {
	if _, err := exec.LookPath("nginx"); err != nil {
		return errors.New("nginx and wrk are needed: make bench installs them")
	}
	nginxAddr, err := freeAddr()
	if err != nil {
		return err
	}
	config := b.path("nginx.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, nginxConfig, b.work, nginxAddr), 0o644); err != nil {
		return err
	}
	// Workers of nginx run as another user, who must reach the site.
	if err := os.Chmod(b.work, 0o755); err != nil {
		return err
	}
	stopNginx, err := start(ctx, nginxAddr, "nginx", "-c", config)
	if err != nil {
		return err
	}
	defer stopNginx()
	ourAddr, stopOurs, err := b.startFallback(ctx)
	if err != nil {
		return err
	}
	defer stopOurs()
	token, _, err := b.largestList()
	if err != nil {
		return err
	}
	path := "/api/v1/lists/" + token + "/details"
	p, err := measure.Middle(rounds, func(int) (p measure.Pair, err error) {
		if p.Other, err = load(ctx, "http://"+nginxAddr+path); err != nil {
			return p, err
		}
		p.Ours, err = load(ctx, "http://"+ourAddr+path)
		return p, err
	})
	b.table.Row("details of one list, hot, 50 connections / nginx", fmt.Sprintf("%.0f/s", p.Ours), fmt.Sprintf("%.0f/s", p.Other), p.Ratio(), "≥ 0.5")
	return err
}

func (b *bench) startFallback(ctx context.Context) (addr string, stop func(), err error) {
	if addr, err = freeAddr(); err != nil {
		return "", nil, err
	}
	stop, err = start(ctx, addr, filepath.Join(b.bin, "fallback"), "--site", b.path("site"), "--addr", addr)
	return addr, stop, err
}

// search asks for terms that have to look at the whole of the largest list, one
// request after the other.
func (b *bench) search(ctx context.Context) error {
	addr, stop, err := b.startFallback(ctx)
	if err != nil {
		return err
	}
	defer stop()
	token, follows, err := b.largestList()
	if err != nil {
		return err
	}
	var took []time.Duration
	for i := range 5_000 {
		begun := time.Now()
		if err := get(fmt.Sprintf("http://%s/api/v1/lists/%s/searchFollowing?term=zz%d", addr, token, i)); err != nil {
			return err
		}
		if i >= 100 { // warm by then
			took = append(took, time.Since(begun))
		}
	}
	slices.Sort(took)
	p50, p99 := took[len(took)/2], took[len(took)*99/100]
	b.table.Row(fmt.Sprintf("term search over the largest list (%d follows), warm, p99", follows),
		p99.Round(10*time.Microsecond).String(), "p50 "+p50.Round(10*time.Microsecond).String(), 0, "≤ 2 ms")
	return nil
}

// largestList finds the list with the most follows by its search shards.
func (b *bench) largestList() (token string, follows int, err error) {
	base := b.path("site/_search/lists")
	lists, err := os.ReadDir(base)
	if err != nil {
		return "", 0, err
	}
	total := regexp.MustCompile(`"total":(\d+)`)
	for _, list := range lists {
		head := make([]byte, 200)
		file, err := os.Open(filepath.Join(base, list.Name(), "0"))
		if err != nil {
			return "", 0, err
		}
		_, err = io.ReadFull(file, head)
		if err := errors.Join(err, file.Close()); err != nil {
			return "", 0, err
		}
		if match := total.FindSubmatch(head); match != nil {
			if n, _ := strconv.Atoi(string(match[1])); n > follows {
				token, follows = list.Name(), n
			}
		}
	}
	return token, follows, nil
}

// load gives the requests per second that wrk reaches.
func load(ctx context.Context, url string) (float64, error) {
	output, err := exec.CommandContext(ctx, "wrk", "-t2", "-c50", "-d5s", url).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("wrk: %w\n%s", err, output)
	}
	if strings.Contains(string(output), "Non-2xx") {
		return 0, fmt.Errorf("wrk %s:\n%s", url, output)
	}
	match := regexp.MustCompile(`Requests/sec:\s+([\d.]+)`).FindSubmatch(output)
	if match == nil {
		return 0, fmt.Errorf("wrk: no figure in\n%s", output)
	}
	return strconv.ParseFloat(string(match[1]), 64)
}

// start starts a server and waits until it listens.
func start(ctx context.Context, addr, name string, args ...string) (stop func(), err error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		_ = c.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = c.Wait()
	}
	for range 100 {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			return stop, conn.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	return nil, fmt.Errorf("%s does not listen on %s", name, addr)
}

func get(url string) error {
	response, err := http.Get(url)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return nil
}

func freeAddr() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
