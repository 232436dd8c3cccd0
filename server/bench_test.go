package server_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
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

// BenchmarkSearch searches a list of 10,000 follows, each with a name.
func BenchmarkSearch(b *testing.B) {
	const follows = 10_000
	snapshot := afero.NewMemMapFs()
	var records, accounts strings.Builder
	for i := range follows {
		address := fmt.Sprintf("0x%040x", 1000+i)
		fmt.Fprintf(&records, `{"token_id":"1","version":1,"record_type":"address","data":%q}`+"\n", address)
		fmt.Fprintf(&accounts, `{"address":%q,"ens":{"name":"someone%d.eth","avatar":"https://img.example/%d.png"}}`+"\n", address, i, i)
	}
	for name, text := range map[string]string{
		"meta.json":       `{"format":1,"as_of":"2026-01-01T00:00:00Z"}`,
		"events.ndjson":   "",
		"badges.ndjson":   "",
		"lists.ndjson":    `{"token_id":"1","owner":"0x00000000000000000000000000000000000000aa"}`,
		"records.ndjson":  records.String(),
		"accounts.ndjson": accounts.String(),
	} {
		if err := afero.WriteFile(snapshot, name, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	site, _, err := generator.ToMemory(context.Background(), snapshot, generator.Options{})
	if err != nil {
		b.Fatal(err)
	}
	handler, err := server.New(context.Background(), storage.NewFolder(site), server.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for _, query := range []string{"term=nobody", "term=someone9999", "term=someone&limit=100", "offset=5000&limit=100"} {
		b.Run(query, func(b *testing.B) {
			r := httptest.NewRequest(http.MethodGet, "/api/v1/lists/1/searchFollowing?"+query, nil)
			b.ReportAllocs()
			for b.Loop() {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					body, _ := io.ReadAll(w.Body)
					b.Fatalf("got %d, want 200: %s", w.Code, body)
				}
			}
		})
	}
}
