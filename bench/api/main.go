// Command api measures the whole read API (`--api efp`): the generator, and the fallback over MinIO
// with the requests of real clients. `make bench-api` builds what it needs.
package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	json "github.com/goccy/go-json"
	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/bench/measure"
	"github.com/followpress/followpress/bench/rig"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
)

func main() {
	b := &bench{Bench: rig.Bench{Objects: measure.Objects}}
	b.Main(b.prepare, b.generate, b.run)
}

// A bench holds the figures of a run.
type bench struct {
	rig.Bench
	*sample
	random *rand.Rand
	server *rig.S3

	accountPaths, followersPaths, statePaths []string
	pagesOf                                  [][]string // requests by profile page
}

const (
	bucket = "site"
	some   = 1000 // number of warm accounts or lists
)

// prepare prepares the requests.
func (b *bench) prepare(context.Context) (err error) {
	b.random = rand.New(rand.NewPCG(1, 1))
	if b.sample, err = readSample(b.Snapshot); err != nil {
		return err
	}
	for _, address := range b.someAddresses(some) {
		b.accountPaths = append(b.accountPaths, "/api/v1/users/"+address+"/account")
	}
	for _, list := range b.longest[:min(some, len(b.longest))] {
		b.followersPaths = append(b.followersPaths, "/api/v1/lists/"+list+"/following?limit=20&tags=&sort=followers")
	}
	if err := b.prepareStates(); err != nil {
		return err
	}
	b.pagesOf, err = b.pages()
	return err
}

// prepareStates makes batches of accounts, half of which the list holds.
func (b *bench) prepareStates() error {
	lists := make([]string, some)
	for i := range lists {
		lists[i] = b.longest[b.random.IntN(len(b.longest))]
	}
	for i := range 5 * some {
		list := lists[i%some]
		batch, held := b.someAddresses(25), b.follows[list]
		for range 25 {
			batch = append(batch, held[b.random.IntN(len(held))])
		}
		body, err := json.Marshal(batch)
		if err != nil {
			return err
		}
		b.statePaths = append(b.statePaths, "/api/v1/lists/"+list+"/buttonStateBatch "+string(body))
	}
	return nil
}

// generate measures the time per object, compared with the other API, and the memory.
func (b *bench) generate(ctx context.Context) (err error) {
	var memory []float64
	generate := func(out string, flags ...string) (perObject, memory float64, err error) {
		arguments := append([]string{"generate", "--snapshot", b.Snapshot, "--rebuild", "--no-sync", "--out", b.Path(out)}, flags...)
		usage, err := measure.Run(exec.CommandContext(ctx, b.Built("followpress"), arguments...))
		if err != nil {
			return 0, 0, err
		}
		objects, bytes, err := counts(b.Path(out))
		fmt.Fprintf(os.Stderr, "%s: %d objects, %.1f MB, %.1f s, %.0f MiB\n", out, objects, float64(bytes)/1e6, usage.Seconds, usage.Memory)
		return usage.Seconds / float64(objects) * 1e6, usage.Memory, err
	}
	rounds, err := measure.Rounds(b.Rounds, func(int) (p measure.Pair, err error) {
		if p.Other, _, err = generate("spec.tar"); err != nil {
			return p, err
		}
		ours, peak, err := generate("efp.tar", "--api", "efp")
		p.Ours, memory = ours, append(memory, peak)
		return p, err
	})
	if err != nil {
		return err
	}
	b.Compare("generate to tar, time per object / the spec site", "µs", rounds, "≤ 1.0")
	b.Figure("generate to tar, peak memory", "MiB", memory, "≤ 512 MiB")
	for _, names := range []string{"copies", "lookup"} {
		if _, _, err := generate("efp.tar", "--api", "efp", "--names", names); err != nil {
			return err
		}
		objects, bytes, err := counts(b.Path("efp.tar"))
		if err != nil {
			return err
		}
		b.Figure("objects with --names "+names, "objects", []float64{float64(objects)},
			map[string]string{"copies": "≤ 1,900,000 objects", "lookup": "≤ 1,400,000 objects"}[names])
		b.Figure("bytes with --names "+names, "MB", []float64{float64(bytes) / 1e6},
			map[string]string{"copies": "≤ 600 MB", "lookup": ""}[names])
	}
	return os.Remove(b.Path("spec.tar"))
}

// counts reads the root at the end of a site in a tar file.
func counts(path string) (objects int, bytes int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, 0, err
	}
	end := make([]byte, min(info.Size(), 1<<20))
	if _, err := file.ReadAt(end, info.Size()-int64(len(end))); err != nil {
		return 0, 0, err
	}
	match := regexp.MustCompile(`"objects":(\d+),"bytes":(\d+)\}`).FindSubmatch(end)
	if match == nil {
		return 0, 0, fmt.Errorf("%s: no root at its end", path)
	}
	objects, _ = strconv.Atoi(string(match[1])) // the pattern has digits
	bytes, _ = strconv.ParseInt(string(match[2]), 10, 64)
	return objects, bytes, nil
}

func (b *bench) run(ctx context.Context) error {
	_, err := rig.ServeS3(ctx, servers.MinIO, b.Tools, b.Path("minio"), func(s *rig.S3) error {
		b.server = s
		for _, part := range []func(context.Context) error{b.publish, b.accounts, b.followers, b.states, b.profiles, b.notifications} {
			if err := part(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

const readable = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::` + bucket + `/*"}]}`

// publish puts all shards, and the objects that the requests need, into the bucket. All objects
// would take an hour.
func (b *bench) publish(ctx context.Context) error {
	there, err := b.server.Client.BucketExists(ctx, bucket)
	if err == nil && !there {
		err = b.server.MakeBucket(ctx, bucket)
	}
	if err == nil {
		err = b.server.Client.SetBucketPolicy(ctx, bucket, readable) // nginx reads it without credentials
	}
	if err != nil {
		return err
	}
	subjects := b.subjects()
	return b.put(ctx, bucket, "efp.tar", func(key string) bool {
		parts := strings.Split(key, "/")
		return len(parts) <= 3 || parts[0] != "api" || parts[2] == "leaderboard" || subjects[parts[3]]
	})
}

// put puts the wanted objects of a site into a bucket.
func (b *bench) put(ctx context.Context, bucket, archive string, wanted func(key string) bool) error {
	file, err := os.Open(b.Path(archive))
	if err != nil {
		return err
	}
	defer file.Close()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	objects, put := tar.NewReader(bufio.NewReaderSize(file, 1<<20)), 0
	for {
		header, err := objects.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return errors.Join(err, group.Wait())
		}
		if !wanted(header.Name) {
			continue
		}
		body, err := io.ReadAll(objects)
		if err != nil {
			return errors.Join(err, group.Wait())
		}
		put++
		group.Go(func() error {
			_, err := b.server.Client.PutObject(ctx, bucket, header.Name, bytes.NewReader(body), int64(len(body)), minio.PutObjectOptions{
				ContentType: "application/json", CacheControl: site.RouteBy(routes.UserAccount).CacheControl,
			})
			return err
		})
	}
	err = group.Wait()
	fmt.Fprintf(os.Stderr, "put %d objects\n", put)
	return err
}

// subjects returns the addresses, names and lists in the requests, and the primary lists of the
// addresses.
func (b *bench) subjects() map[string]bool {
	all := map[string]bool{}
	for _, paths := range append([][]string{b.accountPaths, b.followersPaths, b.statePaths}, b.pagesOf...) {
		for _, path := range paths {
			path, _, _ = strings.Cut(path, " ")
			path, _, _ = strings.Cut(path, "?")
			for _, part := range strings.Split(path, "/")[4:] {
				if key, err := url.PathUnescape(part); err == nil {
					part = key
				}
				all[part] = true
				all[b.primary[part]] = true
			}
		}
	}
	return all
}

// fallback starts a fallback over a bucket, and returns the address of its metrics.
func (b *bench) fallback(ctx context.Context, bucket string) (*rig.Process, string, error) {
	metrics, err := rig.FreeAddr()
	if err != nil {
		return nil, "", err
	}
	process, err := rig.Start(ctx, func(addr string) (*exec.Cmd, error) {
		return b.server.Command(ctx, b.Built("fallback"), "--site", "s3://"+bucket, "--addr", addr, "--metrics-addr", metrics), nil
	})
	if err != nil {
		return nil, "", err
	}
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, err := rig.Get("http://" + process.Addr + "/readyz"); err == nil {
			return process, metrics, nil
		}
		if time.Since(begun) > time.Minute {
			process.Stop()
			return nil, "", errors.New("the fallback is not ready in time")
		}
	}
}

// warm requests each path once.
func warm(addr string, paths []string) error {
	var group errgroup.Group
	group.SetLimit(8)
	for _, path := range paths {
		group.Go(func() error {
			_, err := rig.Get("http://" + addr + path)
			return err
		})
	}
	return group.Wait()
}

func (b *bench) someAddresses(n int) []string {
	picked := make([]string, n)
	for i := range picked {
		picked[i] = b.addresses[b.random.IntN(len(b.addresses))]
	}
	return picked
}

// accounts compares warm accounts with nginx serving the same files.
func (b *bench) accounts(ctx context.Context) error {
	ours, _, err := b.fallback(ctx, bucket)
	if err != nil {
		return err
	}
	defer ours.Stop()
	for _, path := range b.accountPaths {
		body, err := rig.Get("http://" + ours.Addr + path)
		if err != nil {
			return err
		}
		file := filepath.Join(b.Path("site"), path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, body, 0o644)); err != nil {
			return err
		}
	}
	nginx, err := b.Nginx(ctx)
	if err != nil {
		return err
	}
	defer nginx.Stop()
	return b.CompareRates(ctx, fmt.Sprintf("account of %d random addresses, warm, 50 connections / nginx serving the files", some),
		rig.Load{Paths: b.accountPaths, Time: 5 * time.Second}, ours.Addr, nginx.Addr, "≥ 0.5")
}

// followers requests the first pages of the longest lists.
func (b *bench) followers(ctx context.Context) error {
	ours, _, err := b.fallback(ctx, bucket)
	if err != nil {
		return err
	}
	defer ours.Stop()
	load := rig.Load{Rate: 2000, Time: 10 * time.Second, Paths: b.followersPaths}
	if err := warm(ours.Addr, load.Paths); err != nil {
		return err
	}
	return b.Latency(ctx, fmt.Sprintf("first page by followers of the %d longest lists, warm, at 2,000/s", some), ours.Addr, load, "≤ 5 ms")
}

// states posts batches.
func (b *bench) states(ctx context.Context) error {
	ours, _, err := b.fallback(ctx, bucket)
	if err != nil {
		return err
	}
	defer ours.Stop()
	var lists []string
	for _, path := range b.statePaths {
		lists = append(lists, path[:strings.LastIndexByte(path[:strings.IndexByte(path, ' ')], '/')]+"/records")
	}
	load := rig.Load{Rate: 500, Time: 10 * time.Second, Paths: b.statePaths}
	if err := warm(ours.Addr, lists); err != nil {
		return err
	}
	return b.Latency(ctx, "batch of 50 states, random lists, warm, at 500/s", ours.Addr, load, "≤ 10 ms")
}

// profiles loads connected profile pages: first from the fallback alone, then through nginx in front of
// the bucket.
func (b *bench) profiles(ctx context.Context) error {
	ours, metrics, err := b.fallback(ctx, bucket)
	if err != nil {
		return err
	}
	defer ours.Stop()
	load := rig.Load{Time: 10 * time.Second}
	perPage := 0
	for _, page := range b.pagesOf {
		perPage = len(page)
		load.Paths = append(load.Paths, page...)
	}
	if err := warm(ours.Addr, onlyGet(load.Paths)); err != nil {
		return err
	}
	results, err := load.Repeat(ctx, b.Work, ours.Addr, b.Rounds)
	if err != nil {
		return err
	}
	pages, errs := make([]float64, len(results)), 0
	for i, result := range results {
		pages[i] = result.Rate / float64(perPage)
		errs += result.Errors
	}
	b.Figure(fmt.Sprintf("connected profile pages of %d accounts, warm", pageViews), "/s", pages, "≥ 300/s", fmt.Sprintf("%d requests a page", perPage))
	b.Figure("errors of these requests", "", []float64{float64(errs)}, "≤ 0")
	return b.behindNginx(ctx, ours.Addr, metrics, load)
}

// behindNginx measures the share of warm requests that still reach the fallback.
func (b *bench) behindNginx(ctx context.Context, fallback, metrics string, load rig.Load) error {
	dir := b.Path("edge")
	edge, err := rig.Start(ctx, func(addr string) (*exec.Cmd, error) {
		_, err := measure.Run(exec.CommandContext(ctx, b.Built("followpress"), "edge", "--kind", "nginx", "--site", b.Path("efp.tar"),
			"--bucket-url", "http://"+b.server.Addr+"/"+bucket, "--fallback-url", "http://"+fallback,
			"--out", dir, "--listen", addr, "--cache-dir", b.Path("cache-of-edge")))
		if err != nil {
			return nil, err
		}
		return rig.NginxEdge(ctx, dir)
	})
	if err != nil {
		return err
	}
	defer edge.Stop()
	if err := warm(edge.Addr, onlyGet(load.Paths)); err != nil {
		return err
	}
	before, err := answered(metrics)
	if err != nil {
		return err
	}
	result, err := load.Run(ctx, b.Work, edge.Addr)
	if err != nil {
		return err
	}
	after, err := answered(metrics)
	if err != nil {
		return err
	}
	b.Figure("the same behind nginx, warm: requests that reach the fallback", "%",
		[]float64{100 * float64(after-before) / float64(result.Requests)}, "≤ 5 %", fmt.Sprintf("%d errors", result.Errors))
	return nil
}

var requests = regexp.MustCompile(`(?m)^followpress_requests_total\{.*\} (\S+)$`)

// answered returns the number of requests that a fallback has answered.
func answered(metrics string) (n int, err error) {
	body, err := rig.Get("http://" + metrics + "/metrics")
	for _, match := range requests.FindAllSubmatch(body, -1) {
		count, invalid := strconv.ParseFloat(string(match[1]), 64) // a million is 1e+06
		n, err = n+int(count), errors.Join(err, invalid)
	}
	return n, err
}

func onlyGet(paths []string) []string {
	var all []string
	for _, path := range paths {
		if !strings.Contains(path, " ") {
			all = append(all, path)
		}
	}
	return all
}
