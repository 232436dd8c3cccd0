package pages

import (
	"context"
	"fmt"
	"slices"

	"github.com/followpress/followpress/generator/internal/units"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/page"
)

const (
	sitemapPages = 25_000
	// maxSitemapDigits is enough for a billion pages. Overfilling a single sitemap on purpose would
	// take too many names.
	maxSitemapDigits = 4
)

// sitemaps list the pages for search engines.
type sitemaps struct {
	units.Partition        // accounts with a page
	url             string // Config.PublicURL
	pageOf          func(account uint32) string
}

// newSitemaps distributes the pages of accounts over sitemaps, so that none is too large. A page
// stays in its sitemap, whatever other pages come, until there are sixteen times as many sitemaps.
func newSitemaps(ctx context.Context, workers int, url string, accounts []uint32, pageOf func(account uint32) string) (*sitemaps, error) {
	for digits := site.HashDigits(len(accounts), sitemapPages); ; digits++ {
		parts, err := units.NewPartition(ctx, workers, digits, accounts, pageOf)
		if err != nil {
			return nil, err
		}
		largest := 0
		for bucket := range parts.Names {
			largest = max(largest, len(parts.In(bucket)))
		}
		if largest <= 2*sitemapPages || digits == maxSitemapDigits {
			return &sitemaps{parts, url, pageOf}, nil
		}
	}
}

// objects returns the number of sitemaps.
func (s *sitemaps) objects() (n int) {
	for bucket := range s.Names {
		if len(s.In(bucket)) > 0 {
			n++
		}
	}
	return n
}

func (s *sitemaps) renderIndex(_ int, _ *units.Scratch, emit render.Emitter) {
	emit(render.ObjectBytes+len(s.Names)*(render.UserBytes+len(s.url)), func(b []byte) []byte {
		b = append(b, `<?xml version="1.0" encoding="UTF-8"?>`+"\n"+`<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`+"\n"...)
		for i, bucket := range s.Names {
			if len(s.In(i)) == 0 {
				continue // services reject an empty sitemap
			}
			b = fmt.Appendf(b, "<sitemap><loc>%s%s</loc></sitemap>\n", s.url, page.SitemapPartKey(bucket).URLPath())
		}
		return append(b, "</sitemapindex>\n"...)
	}, page.SitemapKey)
}

// render renders the sitemap of a bucket. Addresses of pages need no encoding in URLs or XML.
func (s *sitemaps) render(bucket int, _ *units.Scratch, emit render.Emitter) {
	accounts := s.In(bucket)
	if len(accounts) == 0 {
		return
	}
	accounts = accounts[:min(len(accounts), 2*sitemapPages)]
	names := make([]string, len(accounts))
	size := render.ObjectBytes
	for i, account := range accounts {
		names[i] = s.pageOf(account)
		size += len(names[i]) + len(s.url) + 64
	}
	slices.Sort(names)
	emit(size, func(b []byte) []byte {
		b = append(b, `<?xml version="1.0" encoding="UTF-8"?>`+"\n"+`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`+"\n"...)
		for _, name := range names {
			b = append(append(append(b, "<url><loc>"...), s.url...), '/')
			b = append(append(b, page.Key(name)...), "</loc></url>\n"...)
		}
		return append(b, "</urlset>\n"...)
	}, page.SitemapPartKey(s.Names[bucket]))
}

// robots excludes the answers of the API for robots, and names the sitemaps.
func robots(config site.Config) []byte {
	root := page.Root(config)
	return fmt.Appendf(nil, "User-agent: *\nDisallow: %[1]s/%[2]s/\nDisallow: %[1]s/_search/\nDisallow: %[1]s/_variants/\n\nSitemap: %[3]s/%[4]s\n",
		root, config.BasePath, config.PublicURL, page.SitemapKey)
}
