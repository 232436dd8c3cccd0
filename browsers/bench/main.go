// Command explorer measures the explorer in Chromium for a first-time visitor on a network of 10
// Mbit/s and 40 ms. The site of a real network is in MinIO, behind nginx as followpress edge
// configures it. `make bench-explorer` builds the programs.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"

	json "github.com/goccy/go-json"
	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/bench/measure"
	"github.com/followpress/followpress/bench/rig"
	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

func main() {
	b := &bench{Bench: rig.Bench{Objects: measure.Objects, Rounds: 5}}
	flag.StringVar(&b.only, "api", "", "measure the site of one API only, efp or spec; none measures both")
	b.Main(b.run)
}

// A bench has the site that is currently measured.
type bench struct {
	rig.Bench
	only    string // API; "" for all
	objects storage.Site
	root    site.Root
	top     []account // most followed accounts, in order
	centre  account   // the account whose neighborhood is drawn
	follows int       // number of accounts that it follows
	figures map[string][]float64
}

// An account is an account of the object _explore/top.
type account struct{ address, name, list string }

// sites are measured in turn. The first one's name is not printed.
var sites = []struct{ prefix, api string }{{"", site.APIEFP}, {"specification: ", site.APISpec}}

const bucket = "site"

func (b *bench) run(ctx context.Context) error {
	for _, s := range sites {
		if b.only != "" && b.only != s.api {
			continue
		}
		if err := b.site(ctx, s.prefix, s.api); err != nil {
			return fmt.Errorf("api %s: %w", s.api, err)
		}
	}
	return nil
}

// site generates a site, and measures it.
func (b *bench) site(ctx context.Context, prefix, api string) (err error) {
	tar := b.Path(api + ".tar")
	if _, err := os.Stat(tar); err != nil { // reuse the file of an earlier run with --work
		_, err = measure.Run(exec.CommandContext(ctx, b.Built("followpress"), "generate", "--snapshot", b.Snapshot, "--api", api, "--no-sync", "--out", tar))
		if err != nil {
			return err
		}
	}
	if b.objects, err = storage.OpenSite(ctx, tar, storage.S3Options{}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.objects.Close()) }()
	if err := b.read(ctx); err != nil {
		return err
	}
	keys, err := b.rehearse(ctx)
	if err != nil {
		return err
	}
	_, err = rig.ServeS3(ctx, servers.MinIO, b.Tools, b.Path("minio-"+api), func(s *rig.S3) error {
		if err := b.publish(ctx, s, keys); err != nil {
			return err
		}
		edge, err := b.edge(ctx, s, tar, api)
		if err != nil {
			return err
		}
		defer edge.Stop()
		b.figures = map[string][]float64{}
		for range b.Rounds {
			if err := b.visit(ctx, "http://"+edge.Addr); err != nil {
				return err
			}
		}
		b.report(prefix)
		return nil
	})
	return err
}

// read reads the root, and the accounts that the visits show.
func (b *bench) read(ctx context.Context) error {
	body, err := b.objects.Get(ctx, site.RootKey)
	if err != nil {
		return err
	}
	if b.root, err = site.ParseRoot(body); err != nil {
		return err
	}
	if body, err = b.objects.Get(ctx, site.TopKey); err != nil {
		return err
	}
	var top struct{ Accounts [][]any }
	if err := json.Unmarshal(body, &top); err != nil {
		return err
	}
	b.top = nil
	for _, row := range top.Accounts {
		b.top = append(b.top, account{fmt.Sprint(row[0]), fmt.Sprint(row[1]), fmt.Sprint(row[3])})
	}
	if len(b.top) == 0 {
		return errors.New("no account of the snapshot has a follower")
	}
	b.centre, b.follows, err = b.middle(ctx)
	return err
}

// neighbours is the number of followed accounts in a drawn neighborhood.
const neighbours = 300

// middle returns the most followed account that follows enough others, or else the one that follows
// most.
func (b *bench) middle(ctx context.Context) (middle account, follows int, err error) {
	for _, a := range b.top[:min(len(b.top), 500)] {
		if a.list == "" {
			continue
		}
		body, err := b.objects.Get(ctx, site.SearchShardKey(a.list, 0))
		if errors.Is(err, storage.ErrNotFound) {
			continue // it follows nobody
		} else if err != nil {
			return middle, 0, err
		}
		var shard struct{ Total int }
		if err := json.Unmarshal(body, &shard); err != nil {
			return middle, 0, err
		}
		if shard.Total > follows {
			middle, follows = a, shard.Total
		}
		if follows >= neighbours {
			break
		}
	}
	return middle, follows, nil
}

// rehearse visits the whole site, and returns the requested keys. Putting a million other objects
// into a bucket takes an hour and changes no figure.
func (b *bench) rehearse(ctx context.Context) ([]site.Key, error) {
	var mu sync.Mutex
	asked := map[site.Key]bool{site.RootKey: true}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := site.Key(strings.TrimPrefix(r.URL.Path, "/"))
		body, err := b.objects.Get(r.Context(), key)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		mu.Lock()
		asked[key] = true
		mu.Unlock()
		w.Header().Set("Content-Type", b.route(key).ContentType)
		_, _ = w.Write(body) // the page may be gone
	}))
	defer server.Close()
	b.figures = map[string][]float64{}
	if err := b.visit(ctx, server.URL); err != nil {
		return nil, err
	}
	for i := 0; ; i++ { // how far the board has scrolled depends on the network, so every shard is needed
		key := site.RankedShardKey(i)
		if _, err := b.objects.Get(ctx, key); errors.Is(err, storage.ErrNotFound) {
			break
		} else if err != nil {
			return nil, err
		}
		asked[key] = true
	}
	keys := make([]site.Key, 0, len(asked))
	for key := range asked {
		keys = append(keys, key)
	}
	return keys, nil
}

// route returns the route of a key, or a route without headers.
func (b *bench) route(key site.Key) *site.Route {
	if route, ok := b.root.Config.RouteOf(key); ok {
		return route
	}
	return &site.Route{ContentType: "application/json"}
}

const readable = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::` + bucket + `/*"}]}`

// publish puts objects into a public bucket.
func (b *bench) publish(ctx context.Context, s *rig.S3, keys []site.Key) error {
	there, err := s.Client.BucketExists(ctx, bucket)
	if err == nil && !there {
		err = s.MakeBucket(ctx, bucket)
	}
	if err == nil {
		err = s.Client.SetBucketPolicy(ctx, bucket, readable) // nginx reads it without credentials
	}
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, key := range keys {
		group.Go(func() error {
			body, err := b.objects.Get(ctx, key)
			if err != nil {
				return err
			}
			route := b.route(key)
			_, err = s.Client.PutObject(ctx, bucket, string(key), bytes.NewReader(body), int64(len(body)), minio.PutObjectOptions{
				ContentType: route.ContentType, CacheControl: route.CacheControl,
			})
			return err
		})
	}
	err = group.Wait()
	fmt.Fprintf(os.Stderr, "put %d objects\n", len(keys))
	return err
}

// edge starts nginx in front of the bucket, without a fallback.
func (b *bench) edge(ctx context.Context, s *rig.S3, tar, api string) (*rig.Process, error) {
	dir := b.Path("edge-" + api)
	if err := os.Chmod(b.Work, 0o755); err != nil { // nginx's workers run as another user
		return nil, err
	}
	return rig.Start(ctx, func(addr string) (*exec.Cmd, error) {
		_, err := measure.Run(exec.CommandContext(ctx, b.Built("followpress"), "edge", "--kind", "nginx", "--site", tar,
			"--bucket-url", "http://"+s.Addr+"/"+bucket, "--out", dir, "--listen", addr, "--cache-dir", b.Path("cache-"+api)))
		if err != nil {
			return nil, err
		}
		return rig.NginxEdge(ctx, dir)
	})
}

// visit runs one round: every measure once, each in a page with an empty cache.
func (b *bench) visit(ctx context.Context, base string) error {
	return browser.Run(ctx, "visit", func(t browser.T) {
		v := visitor{T: t, bench: b, Browser: browser.Start(t, browser.Options{}), base: base + "/" + string(site.ExplorerKey("index.html"))}
		v.first()
		v.words()
		v.search()
		v.early()
		v.profile()
		if b.root.Config.EFP() {
			v.board()
		}
		v.graph()
	})
}

// found records a figure of a round.
func (b *bench) found(measure string, value float64) {
	b.figures[measure] = append(b.figures[measure], value)
}

// rows are the measures, with their units and targets.
var rows = []struct{ measure, unit, target string }{
	{first, "ms", "≤ 1,000 ms"},
	{words, "ms", "≤ 1,500 ms"},
	{searched, "ms", "≤ 50 ms"},
	{early, "ms", "≤ 300 ms"},
	{lookup, "ms", ""},
	{profile, "ms", "≤ 1,000 ms"},
	{board, "ms", "≤ 50 ms"},
	{boardFrames, "/s", ""},
	{boardTask, "ms", "≤ 16 ms"},
	{boardBusy, "ms", ""},
	{graph, "/s", "≥ 50/s"},
	{graphShown, "ms", ""},
}

// report adds the rows of a site.
func (b *bench) report(prefix string) {
	for _, row := range rows {
		if values := b.figures[row.measure]; len(values) > 0 {
			note := ""
			if strings.HasPrefix(row.measure, "neighbourhood") {
				note = fmt.Sprintf("of an account that follows %d others", b.follows)
			}
			b.Figure(prefix+row.measure, row.unit, values, row.target, note)
		}
	}
}

// percentile returns the smallest value that at least percent of the samples do not exceed.
func percentile(values []float64, of int) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, len(sorted)*of/100)]
}
