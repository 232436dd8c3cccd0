package server_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/storage"
)

// A discarded response keeps nothing but its headers.
type discarded struct{ header http.Header }

func (d discarded) Header() http.Header         { return d.header }
func (d discarded) Write(b []byte) (int, error) { return len(b), nil }
func (d discarded) WriteHeader(int)             {}

// BenchmarkHotDetails measures the cost of the handler on top of net/http for a cached object.
func BenchmarkHotDetails(b *testing.B) {
	files, _, err := generator.ToMemory(context.Background(), afero.FromIOFS{FS: fixtures.Demo()}, generator.Options{})
	if err != nil {
		b.Fatal(err)
	}
	handler, err := server.New(context.Background(), storage.NewFolder(files), server.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, largeList+"details", nil)
	b.ReportAllocs()
	for b.Loop() {
		handler.ServeHTTP(discarded{http.Header{}}, r)
	}
}
