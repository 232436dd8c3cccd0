package publisher_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/spf13/afero"
	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/fixtures/graph"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// onServers runs a test on a server of each kind, in parallel: tests mostly wait.
func onServers(t *testing.T, check func(*testing.T, *servers.Server)) {
	t.Helper()
	t.Parallel()
	for _, kind := range servers.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			check(t, servers.Start(t, kind))
		})
	}
}

type memory = memsite.Site

// generated makes the site of a snapshot, with leaderboards small enough for a small graph.
func generated(t testing.TB, snapshot afero.Fs, basePath string) memory {
	t.Helper()
	files, _, err := generator.ToMemory(t.Context(), snapshot, generator.Options{Config: site.Config{LeaderboardMax: 10, BasePath: basePath}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := memsite.Read(files)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// demo returns the site of the demo snapshot, some 260 objects.
func demo(t testing.TB) memory {
	t.Helper()
	demoOnce.Do(func() { demoSite = generated(t, afero.FromIOFS{FS: fixtures.Demo()}, "") })
	return maps.Clone(demoSite)
}

var (
	demoOnce sync.Once
	demoSite memory
)

// synthetic returns a snapshot of a graph with about six objects per list.
func synthetic(t testing.TB, lists int) afero.Fs {
	t.Helper()
	files := afero.NewMemMapFs()
	options := graph.Options{Accounts: lists, Lists: lists, Records: 10 * lists, Seed: 1}
	if _, err := graph.Write(t.Context(), options, func(name string) (io.WriteCloser, error) { return files.Create(name) }); err != nil {
		t.Fatal(err)
	}
	return files
}

// opened opens the site on disk, as the command does.
func opened(t testing.TB, m memory, name string) publisher.Site {
	t.Helper()
	return openSite(t, m.Write(t, filepath.Join(t.TempDir(), name)))
}

func openSite(t testing.TB, path string) publisher.Site {
	t.Helper()
	from, err := storage.OpenSite(t.Context(), path, storage.S3Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := from.Close(); err != nil {
			t.Error(err)
		}
	})
	return from
}

// A place is a bucket of a server, or a prefix of one. Tests inspect it with a plain client, and
// publish to it with the code under test.
type place struct {
	server *servers.Server
	at     storage.Location
	plain  minio.Core
}

func newPlace(t testing.TB, server *servers.Server, prefix string) place {
	t.Helper()
	return place{server, storage.Location{Bucket: server.Bucket(t), Prefix: prefix}, minio.Core{Client: server.Client()}}
}

// open opens the bucket as the code under test does, directly.
func (p place) open(t testing.TB, transport http.RoundTripper) storage.Bucket {
	t.Helper()
	return p.openAt(t, p.server.Endpoint, transport)
}

// openAt opens the bucket through a proxy.
func (p place) openAt(t testing.TB, endpoint string, transport http.RoundTripper) storage.Bucket {
	t.Helper()
	bucket, err := openAs(credentialsOf(p.server), p.at, storage.S3Options{Endpoint: endpoint, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return bucket
}

func credentialsOf(server *servers.Server) map[string]string {
	return map[string]string{"AWS_ACCESS_KEY_ID": server.AccessKey, "AWS_SECRET_ACCESS_KEY": server.SecretKey, "AWS_SESSION_TOKEN": "",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": ""}
}

var environment sync.Mutex

// openAs opens a bucket with credentials in the environment, which are read once, here. Concurrent
// tests cannot use t.Setenv.
func openAs(credentials map[string]string, at storage.Location, o storage.S3Options) (storage.Bucket, error) {
	environment.Lock()
	defer environment.Unlock()
	for name, value := range credentials {
		if err := os.Setenv(name, value); err != nil {
			return nil, err
		}
	}
	return storage.OpenBucket(context.Background(), at, o)
}

// unpacking returns the bucket, or without archives one whose server seems not to unpack any.
func unpacking(archives bool, b storage.Bucket) publisher.Bucket {
	if archives {
		return b
	}
	return struct{ publisher.Bucket }{b}
}

// put writes an object as another program would.
func (p place) put(t testing.TB, key site.Key, body string, headers minio.PutObjectOptions) {
	t.Helper()
	_, err := p.plain.Client.PutObject(context.Background(), p.at.Bucket, p.at.Prefix+string(key), strings.NewReader(body), int64(len(body)), headers)
	if err != nil {
		t.Fatal(err)
	}
}

// remove deletes an object as another program would.
func (p place) remove(t testing.TB, key site.Key) {
	t.Helper()
	if err := p.plain.RemoveObject(context.Background(), p.at.Bucket, p.at.Prefix+string(key), minio.RemoveObjectOptions{}); err != nil {
		t.Fatal(err)
	}
}

// get reads an object; ok is false if there is none.
func (p place) get(t testing.TB, key site.Key) (body string, ok bool) {
	t.Helper()
	stream, _, _, err := p.plain.GetObject(context.Background(), p.at.Bucket, p.at.Prefix+string(key), minio.GetObjectOptions{})
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return "", false
	} else if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	read, err := io.ReadAll(stream)
	if err != nil {
		t.Fatal(err)
	}
	return string(read), true
}

// list returns the objects with their ETags, the MD5s of the received bodies.
func (p place) list(t testing.TB) map[site.Key]minio.ObjectInfo {
	t.Helper()
	all := map[site.Key]minio.ObjectInfo{}
	for o := range p.plain.ListObjectsIter(context.Background(), p.at.Bucket, minio.ListObjectsOptions{Recursive: true}) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		key, ok := strings.CutPrefix(o.Key, p.at.Prefix)
		if !ok {
			t.Errorf("key: got %s, want one below the prefix", o.Key)
		}
		all[site.Key(key)] = o
	}
	return all
}

// holds checks that the bucket contains exactly the site, byte for byte and with its headers.
func (p place) holds(t testing.TB, want memory) {
	t.Helper()
	listed := p.list(t)
	p.holdsOnly(t, listed, want, nil)
	config := want.Root(t).Config
	var group errgroup.Group
	group.SetLimit(16)
	for key := range listed {
		group.Go(func() error { return p.check(key, config, want) })
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

func (p place) check(key site.Key, config site.Config, want memory) error {
	wanted, ok := want[key]
	if !ok || isManifest(key) { // the bytes of a manifest may differ
		return nil
	}
	stream, info, _, err := p.plain.GetObject(context.Background(), p.at.Bucket, p.at.Prefix+string(key), minio.GetObjectOptions{})
	if err != nil {
		return fmt.Errorf("get %s: %w", key, err)
	}
	defer stream.Close()
	body, err := io.ReadAll(stream)
	if err != nil {
		return fmt.Errorf("get %s: %w", key, err)
	}
	if string(body) != wanted {
		return fmt.Errorf("%s has %d bytes that are not the %d of the site", key, len(body), len(wanted))
	}
	route, _ := config.RouteOf(key)
	if cache := info.Metadata.Get("Cache-Control"); info.ContentType != route.ContentType || cache != route.CacheControl {
		return fmt.Errorf("headers of %s: got %q and %q, want %q and %q", key, info.ContentType, cache, route.ContentType, route.CacheControl)
	}
	return nil
}

// lists checks the same by sizes and ETags only, which is faster.
func (p place) lists(t testing.TB, want memory, beside ...site.Key) {
	t.Helper()
	p.holdsOnly(t, p.list(t), want, beside)
}

func (p place) holdsOnly(t testing.TB, listed map[site.Key]minio.ObjectInfo, want memory, beside []site.Key) {
	t.Helper()
	var wrong []string
	stored, named := memory{}, memory{site.RootKey: want[site.RootKey]} // the manifest, which a bucket may keep as deltas
	for key, body := range want {
		info, ok := listed[key]
		switch {
		case isManifest(key):
			named[key] = body
		case !ok:
			wrong = append(wrong, fmt.Sprintf("%s is missing", key))
		case info.ETag != site.Sum([]byte(body)).String() || info.Size != int64(len(body)):
			wrong = append(wrong, fmt.Sprintf("%s has other bytes", key))
		}
	}
	for key := range listed {
		if isManifest(key) || key == site.RootKey {
			stored[key], _ = p.get(t, key)
			continue
		}
		if _, ok := want[key]; !ok && !slices.Contains(beside, key) && !p.mayStay(t, key) {
			wrong = append(wrong, fmt.Sprintf("%s is not of the site", key))
		}
	}
	for _, key := range beside {
		if _, ok := listed[key]; !ok {
			wrong = append(wrong, fmt.Sprintf("%s is gone", key))
		}
	}
	if err := stored.CompareStored(named); err != nil {
		wrong = append(wrong, err.Error())
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		t.Errorf("bucket: got %d differences from the site, want none: %s", len(wrong), strings.Join(wrong[:min(5, len(wrong))], "; "))
	}
}

func isManifest(key site.Key) bool {
	return strings.HasPrefix(string(key), string(site.ManifestKey("")))
}

// mayStay reports whether a key is a free lock, or a mark left because of a doubt.
func (p place) mayStay(t testing.TB, key site.Key) bool {
	t.Helper()
	if key != site.LockKey && key != site.MarkKey {
		return false
	}
	lock, _ := p.get(t, site.LockKey)
	return strings.Contains(lock, `"released":true`) && (key == site.LockKey || strings.Contains(lock, `"doubt"`))
}

// publish makes the bucket equal to the site.
func publish(t testing.TB, from publisher.Site, to publisher.Bucket, o publisher.Options) *publisher.Report {
	t.Helper()
	report, err := publisher.Publish(t.Context(), from, to, o)
	if err != nil {
		t.Fatalf("publish: got %v, want no error", err)
	}
	return report
}
