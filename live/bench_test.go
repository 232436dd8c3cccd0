package live_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/live"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// BenchmarkServe compares warm answers of a Live with those of serve over a folder, over HTTP and taking turns: details, and
// first pages that are computed. ratio is that of the requests per second; it should be 0.9 or more.
func BenchmarkServe(b *testing.B) {
	o := live.Options{Generator: generator.Options{Config: site.Config{API: site.APIEFP}}}
	l := run(b, o)
	l.feed <- atBlock(1, demo())
	<-l.ended
	path := filepath.Join(b.TempDir(), "site")
	if _, err := generator.ToPath(b.Context(), demo(), path, o.Generator); err != nil {
		b.Fatal(err)
	}
	folder, err := storage.OpenSite(context.Background(), path, storage.S3Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer folder.Close()
	h, err := server.New(b.Context(), folder, server.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	urls := []string{listening(b, h), listening(b, l)}
	for name, target := range map[string]string{"details": "/api/v1/lists/104/details", "first page": "/api/v1/lists/104/followers?limit=20"} {
		b.Run(name, func(b *testing.B) {
			var took [2]time.Duration
			const turn = 200
			for b.Loop() {
				for i, url := range urls {
					begun := time.Now()
					for range turn {
						response, err := http.Get(url + target)
						if err != nil {
							b.Fatal(err)
						}
						if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
							b.Fatal(response.Status, err)
						}
						response.Body.Close()
					}
					took[i] += time.Since(begun)
				}
			}
			b.ReportMetric(float64(took[0])/float64(took[1]), "ratio")
			b.ReportMetric(float64(took[1].Nanoseconds())/float64(b.N*turn), "ns/answer")
		})
	}
}

// listening serves a handler as the commands do, and returns its URL.
func listening(b *testing.B, h http.Handler) string {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, listener, h, slog.New(slog.DiscardHandler), server.Limits{}) }()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}
