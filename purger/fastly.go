package purger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/secret"
)

const fastlyEndpoint = "https://api.fastly.com"

// fastlyBatch is the documented limit of keys per request
// (www.fastly.com/documentation/reference/api/purging/, "Purge multiple surrogate key tags").
const fastlyBatch = 256

// fastly purges single URLs (POST /purge/{url}), everything (POST /service/{id}/purge_all), or by
// tags, which it calls surrogate keys (POST /service/{id}/purge). Objects without tags, where queries
// cannot be listed, are purged with everything.
type fastly struct {
	endpoint, id, token string
	sites               []string
}

func newFastly(rest string, o Options, hide *secret.Hider) (service, error) {
	switch {
	case o.FastlyToken == "":
		return service{}, errors.New("no credentials: set FASTLY_API_TOKEN")
	case len(o.Sites) == 0:
		return service{}, errNoSite
	}
	endpoint, err := endpointOf(Fastly, o, fastlyEndpoint)
	f := &fastly{endpoint, rest, hide.Use(o.FastlyToken), o.Sites}
	return service{name: string(Fastly) + ":" + rest, inFlight: defaultInFlight, cut: f.cut, cutTags: func(tags []string) []batch { return cutAt(tags, fastlyBatch) }, request: f.request}, err
}

// endpointOf returns the URL of a service's API, without a slash at the end.
func endpointOf(kind Kind, o Options, usual string) (string, error) {
	text := cmp.Or(o.Endpoints[kind], usual)
	_, err := parseURL(text)
	return strings.TrimSuffix(text, "/"), err
}

func (f *fastly) cut(p Purge) []batch {
	if p.All || len(p.Wide)+len(p.Each) > 0 {
		return []batch{{all: true}}
	}
	var urls []string
	for _, s := range f.sites {
		_, host, _ := strings.Cut(s, "://")
		for _, u := range p.Exact {
			urls = append(urls, host+u)
		}
	}
	return cutAt(urls, 1)
}

func (f *fastly) request(ctx context.Context, b batch) (*http.Request, error) {
	service := f.endpoint + "/service/" + url.PathEscape(f.id)
	to, body := "", []byte(nil)
	switch {
	case b.all:
		to = service + "/purge_all"
	case b.tags:
		to = service + "/purge"
		var err error
		if body, err = json.Marshal(map[string][]string{"surrogate_keys": b.items}); err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
	default:
		to = f.endpoint + "/purge/" + b.items[0]
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if b.tags {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Fastly-Key", f.token)
	r.Header.Set("Accept", "application/json")
	return r, nil
}
