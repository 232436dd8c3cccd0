// Command bench measures the commands beside the tools that people would use
// instead, on one machine in one run, and prints a table. `make bench` builds
// what it needs.
package main

import (
	"cmp"
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

	"github.com/followpress/followpress/fixtures/graph"
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
	rows                []string
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
		if err := makeSnapshot(ctx, b.snapshot); err != nil {
			return err
		}
	}
	for _, measure := range []func(context.Context) error{b.folder, b.tar, b.requests, b.search} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("\n| measure | ours | other | ratio | target |\n|---|---|---|---|---|\n%s\n", strings.Join(b.rows, "\n"))
	return nil
}

func (b *bench) path(name string) string { return filepath.Join(b.work, name) }

// row adds a line to the table. Without another tool the figure itself has the target.
func (b *bench) row(measure, ours, other string, ratio float64, target string) {
	text := ""
	if ratio > 0 {
		text = fmt.Sprintf("%.2f", ratio)
	}
	b.rows = append(b.rows, fmt.Sprintf("| %s | %s | %s | %s | %s |", measure, ours, other, text, target))
	fmt.Fprintf(os.Stderr, "%s: %s %s %s\n", measure, ours, other, text)
}

// rounds is how often two things are measured in turns: machines are noisy, and
// the round with the middle ratio is what counts.
const rounds = 3

// A pair is a figure of ours and one to compare it with.
type pair struct{ ours, other float64 }

func (p pair) ratio() float64 { return p.ours / p.other }

// middle measures in turns and gives the pair with the middle ratio.
func middle(measure func(round int) (pair, error)) (pair, error) {
	pairs := make([]pair, rounds)
	for i := range pairs {
		var err error
		if pairs[i], err = measure(i); err != nil {
			return pair{}, err
		}
		fmt.Fprintf(os.Stderr, "  %.2f / %.2f = %.2f\n", pairs[i].ours, pairs[i].other, pairs[i].ratio())
	}
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Compare(a.ratio(), b.ratio()) })
	return pairs[rounds/2], nil
}

// folder measures folders. Every round writes new ones and nothing is removed
// before the end: file systems are slow for a while after removing so much.
func (b *bench) folder(ctx context.Context) error {
	var memory float64
	fresh, err := middle(func(round int) (p pair, err error) {
		site := b.siteName(round)
		var peak float64
		if p.ours, peak, err = b.generate(ctx, site); err != nil {
			return p, err
		}
		memory = max(memory, peak)
		p.other, err = timed(ctx, "cp", "-r", b.path(site), b.path("copy-of-"+site))
		return p, err
	})
	if err != nil {
		return err
	}
	again, err := middle(func(round int) (p pair, err error) {
		p.ours, _, err = b.generate(ctx, b.siteName(round))
		p.other = fresh.ours
		return p, err
	})
	if err != nil {
		return err
	}
	b.row("generate to a fresh folder / `cp -r`", seconds(fresh.ours), seconds(fresh.other), fresh.ratio(), "≤ 0.8")
	b.row("generate over an unchanged site / first run", seconds(again.ours), seconds(again.other), again.ratio(), "≤ 0.25")
	b.row("peak memory of generate to a folder", fmt.Sprintf("%.0f MiB", memory), "", 0, "≤ 256 MiB")
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
	p, err := middle(func(round int) (p pair, err error) {
		if p.ours, _, err = b.generate(ctx, fmt.Sprintf("site-%d.tar", round)); err != nil {
			return p, err
		}
		p.other, err = timed(ctx, "tar", "cf", b.path(fmt.Sprintf("other-%d.tar", round)), "-C", b.path("site"), ".")
		return p, err
	})
	b.row("generate to a tar / `tar cf`", seconds(p.ours), seconds(p.other), p.ratio(), "≤ 0.5")
	return err
}

// generate runs the command and gives its seconds and its peak memory in MiB.
func (b *bench) generate(ctx context.Context, out string) (elapsed, memory float64, err error) {
	syscall.Sync() // what others wrote must not be paid for here
	c := exec.CommandContext(ctx, filepath.Join(b.bin, "generate"), "--snapshot", b.snapshot, "--out", b.path(out))
	start := time.Now()
	if output, err := c.CombinedOutput(); err != nil {
		return 0, 0, fmt.Errorf("generate: %w\n%s", err, output)
	}
	elapsed = time.Since(start).Seconds()
	if usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		memory = float64(usage.Maxrss) / 1024 // Linux counts KiB
	}
	return elapsed, memory, nil
}

func timed(ctx context.Context, name string, args ...string) (float64, error) {
	syscall.Sync()
	start := time.Now()
	if output, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", name, err, output)
	}
	return time.Since(start).Seconds(), nil
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
	p, err := middle(func(int) (p pair, err error) {
		if p.other, err = load(ctx, "http://"+nginxAddr+path); err != nil {
			return p, err
		}
		p.ours, err = load(ctx, "http://"+ourAddr+path)
		return p, err
	})
	b.row("details of one list, hot, 50 connections / nginx", fmt.Sprintf("%.0f/s", p.ours), fmt.Sprintf("%.0f/s", p.other), p.ratio(), "≥ 0.5")
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
	b.row(fmt.Sprintf("term search over the largest list (%d follows), warm, p99", follows),
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

func makeSnapshot(ctx context.Context, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	options := graph.Options{Accounts: 75_879, Lists: 61_572, Records: 511_524, Seed: 1}
	_, err := graph.Write(ctx, options, func(name string) (io.WriteCloser, error) {
		return os.Create(filepath.Join(dir, name))
	})
	return err
}

func seconds(s float64) string { return fmt.Sprintf("%.1f s", s) }
