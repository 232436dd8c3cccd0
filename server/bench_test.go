package server_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A discarded response keeps nothing but its headers.
type discarded struct{ header http.Header }

func (d discarded) Header() http.Header         { return d.header }
func (d discarded) Write(b []byte) (int, error) { return len(b), nil }
func (d discarded) WriteHeader(int)             {}

// BenchmarkHotDetails measures the cost of the handler on top of net/http for a cached object.
func BenchmarkHotDetails(b *testing.B) {
	handler := newHandler(b, storage.NewFolder(demo(b)), server.Options{})
	r := httptest.NewRequest(http.MethodGet, largeList+"details", nil)
	b.ReportAllocs()
	for b.Loop() {
		handler.ServeHTTP(discarded{http.Header{}}, r)
	}
}

// BenchmarkSearch searches a list of 10,000 follows, each with a name.
func BenchmarkSearch(b *testing.B) {
	const follows = 10_000
	var records, accounts strings.Builder
	for i := range follows {
		address := fmt.Sprintf("0x%040x", 1000+i)
		fmt.Fprintf(&records, `{"token_id":"1","version":1,"record_type":"address","data":%q}`+"\n", address)
		fmt.Fprintf(&accounts, `{"address":%q,"ens":{"name":"someone%d.eth","avatar":"https://img.example/%d.png"}}`+"\n", address, i, i)
	}
	const list = `{"token_id":"1","owner":"0x00000000000000000000000000000000000000aa"}`
	files := generated(b, snapshotOf(list, records.String(), accounts.String()), site.Config{})
	handler := newHandler(b, storage.NewFolder(files), server.Options{})
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
