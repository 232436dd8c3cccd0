package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/bench/internal/measure"
	"github.com/followpress/followpress/bench/internal/rig"
	"github.com/followpress/followpress/internal/testenv/servers"
)

// The limits of publish: what minio-go, which sends its requests, does with the same files, without plan, manifest
// and lock.
const (
	loop     tool = "PutObject"
	snowball tool = "PutObjectsSnowball"
)

// loopConcurrency is that of publish.
const loopConcurrency = 64

// limits compares publish with the limits, round by round, with the best one for the server.
func (b *bench) limits(ctx context.Context, kind servers.Kind, name string, of ...tool) error {
	files, err := filesOf(b.Path(full))
	if err != nil {
		return err
	}
	rates := map[tool][]float64{}
	rounds, err := measure.Rounds(b.Rounds, func(round int) (p measure.Pair, err error) {
		turns := append([]tool{ours}, of...)
		if round%2 == 1 {
			slices.Reverse(turns)
		}
		for _, by := range turns {
			took, err := b.fill(ctx, kind, fmt.Sprintf("%s-limit-%s-%d", kind, by, round), by, files)
			if err != nil {
				return p, err
			}
			rate := float64(len(files)) / took
			if by == ours {
				p.Ours = rate
				continue
			}
			p.Other = max(p.Other, rate)
			rates[by] = append(rates[by], rate)
		}
		return p, nil
	})
	if err != nil {
		return err
	}
	b.Compare("first publish to "+name+" / minio-go", "/s", rounds, "≥ 0.9", fmt.Sprintf("%d objects", len(files)))
	for _, by := range of {
		b.Figure(fmt.Sprintf("minio-go's %s to %s", by, name), "/s", rates[by], "")
	}
	return nil
}

// fill fills an empty bucket of a new server, and returns the seconds that it took.
func (b *bench) fill(ctx context.Context, kind servers.Kind, name string, by tool, files []string) (took float64, err error) {
	_, err = b.serve(ctx, kind, name, func(s *rig.S3) error {
		if err := s.MakeBucket(ctx, bucket); err != nil {
			return err
		}
		if by == ours {
			usage, err := measure.Run(b.publish(ctx, s, full))
			took = usage.Seconds
			return err
		}
		client, err := newClient(s.Addr)
		if err != nil {
			return err
		}
		syscall.Sync() // as before ours
		begun := time.Now()
		put := putAll
		if by == snowball {
			put = putSnowball
		}
		err = put(ctx, client, b.Path(full), files)
		took = time.Since(begun).Seconds()
		return err
	})
	return took, errors.Join(err, os.RemoveAll(b.Path(name)))
}

// filesOf reads a site, so that it is in the page cache, and returns the names of its files.
func filesOf(site string) (names []string, err error) {
	err = filepath.WalkDir(site, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(site, path)
		if err != nil {
			return err
		}
		names = append(names, filepath.ToSlash(name))
		_, err = os.ReadFile(path)
		return err
	})
	return names, err
}

// newClient keeps a connection for each request in flight, as publish does.
func newClient(addr string) (*minio.Client, error) {
	transport, err := minio.DefaultTransport(false)
	if err != nil {
		return nil, err
	}
	transport.MaxIdleConnsPerHost, transport.MaxIdleConns = loopConcurrency, loopConcurrency
	return minio.New(addr, &minio.Options{Creds: credentials.NewStaticV4(rig.AccessKey, rig.SecretKey, ""), Region: "us-east-1", Transport: transport})
}

// putOptions are those of publish, which lets the server compare an MD5 instead of a SHA-256.
func putOptions() minio.PutObjectOptions {
	return minio.PutObjectOptions{ContentType: "application/json", CacheControl: "public, max-age=300", DisableContentSha256: true,
		SendContentMd5: true, DisableMultipart: true}
}

// putAll puts each file with a request of its own.
func putAll(ctx context.Context, client *minio.Client, site string, files []string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(loopConcurrency)
	for _, name := range files {
		group.Go(func() error {
			body, err := os.ReadFile(filepath.Join(site, name))
			if err != nil {
				return err
			}
			_, err = client.PutObject(ctx, bucket, name, bytes.NewReader(body), int64(len(body)), putOptions())
			return err
		})
	}
	return group.Wait()
}

// putSnowball puts all files with one request, which the server unpacks.
func putSnowball(ctx context.Context, client *minio.Client, site string, files []string) error {
	group, ctx := errgroup.WithContext(ctx)
	objects := make(chan minio.SnowballObject)
	group.Go(func() error {
		defer close(objects)
		for _, name := range files {
			body, err := os.ReadFile(filepath.Join(site, name))
			if err != nil {
				return err
			}
			object := minio.SnowballObject{Key: name, Size: int64(len(body)), ModTime: time.Now(), Content: io.Reader(bytes.NewReader(body)),
				Headers: http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"public, max-age=300"}}}
			select {
			case objects <- object:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	group.Go(func() error {
		return client.PutObjectsSnowball(ctx, bucket, minio.SnowballOptions{Opts: minio.PutObjectOptions{DisableContentSha256: true}}, objects)
	})
	return group.Wait()
}
