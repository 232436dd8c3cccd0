package purger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/secret"
)

const (
	cloudflareEndpoint = "https://api.cloudflare.com/client/v4"
	// cloudflareBatch is the documented limit of prefixes or tags per request
	// (developers.cloudflare.com/cache/how-to/purge-cache/, "Availability and limits"). A plan for free takes
	// 5 requests a minute after 25 at once, and answers 429 to others.
	cloudflareBatch = 100
)

// cloudflare purges by tags, or by prefixes of URLs: whole path segments, with any query. Purging single
// URLs ("files") would need every query, and does not reach what a Worker caches under keys of
// its own.
type cloudflare struct {
	endpoint, zone, token string
	sites                 []string
}

func newCloudflare(rest string, o Options, hide *secret.Hider) (service, error) {
	switch {
	case o.CloudflareToken == "":
		return service{}, errors.New("no credentials: set CLOUDFLARE_API_TOKEN, to a token that may purge the cache of the zone")
	case len(o.Sites) == 0:
		return service{}, errNoSite
	}
	endpoint, err := endpointOf(Cloudflare, o, cloudflareEndpoint)
	c := &cloudflare{endpoint, rest, hide.Use(o.CloudflareToken), o.Sites}
	return service{name: string(Cloudflare) + ":" + rest, inFlight: 1, cut: c.cut, cutTags: func(tags []string) []batch { return cutAt(tags, cloudflareBatch) }, request: c.request, finish: c.finish}, err
}

func (c *cloudflare) cut(p Purge) []batch {
	if p.All {
		return []batch{{all: true}}
	}
	var prefixes []string
	for _, s := range c.sites {
		_, host, _ := strings.Cut(s, "://")
		for _, path := range toPlainFolders(p.withoutEach()).paths() {
			prefixes = append(prefixes, host+strings.TrimSuffix(path, "/"))
		}
	}
	return cutAt(prefixes, cloudflareBatch)
}

// toPlainFolders replaces each path that has an odd byte with its folder, because Cloudflare does
// not document how it reads such prefixes.
func toPlainFolders(p Purge) Purge {
	var plain Purge
	for _, u := range p.Exact {
		plain.addPlain(&plain.Exact, u)
	}
	for _, u := range p.Wide {
		plain.addPlain(&plain.Wide, u)
	}
	return plain.compact()
}

func (p *Purge) addPlain(to *[]string, u string) {
	if i := oddAt(u); i < len(u) {
		to, u = &p.Wide, u[:strings.LastIndexByte(u[:i], '/')+1]
	}
	*to = append(*to, u)
}

func (c *cloudflare) request(ctx context.Context, b batch) (*http.Request, error) {
	purge := map[string]any{"purge_everything": true}
	if b.tags {
		purge = map[string]any{"tags": b.items}
	} else if !b.all {
		purge = map[string]any{"prefixes": b.items}
	}
	body, err := json.MarshalWithOption(purge, json.DisableHTMLEscape())
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint+"/zones/"+url.PathEscape(c.zone)+"/purge_cache", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Content-Type", "application/json")
	return r, nil
}

// finish checks the field success of the answer, which counts more than the status.
func (c *cloudflare) finish(_ context.Context, asked *client, answer []byte) error {
	var said struct {
		Success bool `json:"success"`
	}
	if err := json.Unmarshal(answer, &said); err != nil || !said.Success {
		return fmt.Errorf("the answer does not report success: %s", asked.quote(answer))
	}
	return nil
}
