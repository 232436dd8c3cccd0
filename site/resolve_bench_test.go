package site_test

import (
	"net/http"
	"testing"

	"github.com/followpress/followpress/site"
)

// BenchmarkResolve measures the cost of a request before anything is read.
func BenchmarkResolve(b *testing.B) {
	c, err := site.Config{}.WithDefaults()
	if err != nil {
		b.Fatal(err)
	}
	for _, bench := range []struct{ name, path, query string }{
		{"object", "/api/v1/lists/3017/details", ""},
		{"page", "/api/v1/lists/3017/searchFollowing", "offset=950&limit=100"},
		{"term", "/api/v1/users/0x00000000000000000000000000000000000000aa/searchFollowing", "term=Fox"},
		{"no route", "/favicon.ico", ""},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Resolve(http.MethodGet, bench.path, bench.query)
			}
		})
	}
}
