package fresh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/followpress/followpress/internal/secret"
)

// An upstream is a source of fresh data. It is safe for concurrent use.
type upstream struct {
	template string      // URL with {address}, and {event_id} for badges
	key      secret.Text // sent as headerAPIKey; "" sends none
	client   *http.Client
}

const (
	headerAPIKey = "X-API-Key"

	maxUpstreamBytes = 1 << 20
	maxUpstreamHead  = 64 << 10
)

var (
	// ErrUpstream means that an upstream failed or sent an invalid answer.
	ErrUpstream = errors.New("the upstream failed")
	// errUpstreamAbsent means that the upstream answered 404.
	errUpstreamAbsent = errors.New("the upstream has no such account")
)

// newUpstream returns an upstream, or nil for the template "". It rejects a template that lacks a
// placeholder. Errors never contain the template or the key, which may be secret.
func newUpstream(template string, key secret.Text, transport http.RoundTripper, placeholders ...string) (*upstream, error) {
	if template == "" {
		return nil, nil
	}
	if strings.ContainsFunc(string(key), unicode.IsControl) {
		return nil, errors.New("the API key contains a control character, such as a line end")
	}
	filled := template
	for _, placeholder := range placeholders {
		if !strings.Contains(template, placeholder) {
			return nil, fmt.Errorf("the URL has no %s", placeholder)
		}
		filled = strings.ReplaceAll(filled, placeholder, "0")
	}
	u, err := url.Parse(filled)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.ContainsAny(filled, "{}") || u.Fragment != "" {
		return nil, fmt.Errorf("the URL must be like https://HOST/%s", strings.Join(placeholders, "/"))
	}
	_, host, _ := strings.Cut(template, "://")
	if end := strings.IndexAny(host, "/?"); end >= 0 {
		host = host[:end]
	}
	if strings.Contains(host, "{") {
		return nil, errors.New("the URL has a placeholder in its host")
	}
	if transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		own.MaxIdleConnsPerHost = badgesAtOnce
		own.MaxResponseHeaderBytes = maxUpstreamHead
		transport = own
	}
	return &upstream{template, key, &http.Client{
		Transport: transport,
		// A redirect is a failure: only the configured host may answer.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// get fetches a document of at most most bytes. replacements are pairs of placeholder and value;
// values need no escaping. The error is errUpstreamAbsent for a 404 and wraps ErrUpstream
// otherwise. It never contains the URL, which may be secret.
func (u *upstream) get(ctx context.Context, most int64, replacements ...string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.NewReplacer(replacements...).Replace(u.template), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUpstream, withoutURL(err))
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "followpress")
	if u.key != "" {
		request.Header.Set(headerAPIKey, string(u.key))
	}
	response, err := u.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUpstream, withoutURL(err))
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotFound {
		return nil, errUpstreamAbsent
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: status %d", ErrUpstream, response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUpstream, withoutURL(err))
	}
	if int64(len(body)) > most {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrUpstream, most)
	}
	return body, nil
}

func withoutURL(err error) error {
	var in *url.Error
	if errors.As(err, &in) {
		return in.Err
	}
	return err
}
