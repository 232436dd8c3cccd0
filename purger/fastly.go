package purger

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

const fastlyEndpoint = "https://api.fastly.com"

// fastly purges single URLs (POST /purge/{url}) or everything (POST /service/{id}/purge_all).
// Groups of URLs need the header Surrogate-Key, which objects of a bucket do not have. So where
// queries cannot be listed, everything is purged.
type fastly struct {
	endpoint, id, token string
	sites               []string
}

func newFastly(rest string, o Options) (service, error) {
	switch {
	case o.FastlyToken == "":
		return service{}, errors.New("no credentials: set FASTLY_API_TOKEN")
	case len(o.Sites) == 0:
		return service{}, errNoSite
	}
	endpoint, err := endpointOf(Fastly, o, fastlyEndpoint)
	f := &fastly{endpoint, rest, o.FastlyToken, o.Sites}
	return service{name: string(Fastly) + ":" + rest, inFlight: defaultInFlight, cut: f.cut, request: f.request}, err
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
	to := f.endpoint + "/service/" + url.PathEscape(f.id) + "/purge_all"
	if !b.all {
		to = f.endpoint + "/purge/" + b.items[0]
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Fastly-Key", f.token)
	r.Header.Set("Accept", "application/json")
	return r, nil
}
