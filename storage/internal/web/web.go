// Package web has the site that an HTTPS server publishes, which nobody can list.
package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage/internal/object"
)

const (
	webMost     = 64 << 20 // bytes of an object that Get takes: more than any of a site has
	webUnsized  = 64 << 10 // bytes that are read before admit is asked, of a body whose size the server does not say
	webTimeout  = 2 * time.Minute
	webAnswer   = 30 * time.Second // until the header of an answer is there
	webRedirect = 5                // redirects that are followed, all on the same server
)

// A Site is a site that is online: an edge, a fallback, or a public bucket. It can be read by key, but nobody can list it.
type Site struct {
	base   string // without a slash at the end
	client *http.Client
	pace   pace
}

// Is reports whether a text is meant for Open.
func Is(text string) bool {
	return strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")
}

// Open opens https://HOST or https://HOST/PREFIX. It sends no request.
func Open(text string) (*Site, error) {
	u, err := url.Parse(text)
	if err != nil || !Is(text) || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the URL of a site is like https://HOST, or https://HOST/PATH")
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableCompression: true, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute,
		TLSHandshakeTimeout: webAnswer, ResponseHeaderTimeout: webAnswer,
	}
	return &Site{base: strings.TrimSuffix(u.String(), "/"), client: &http.Client{Transport: transport, Timeout: webTimeout, CheckRedirect: checkRedirect}}, nil
}

// checkRedirect keeps to the server that was named: what another one says is not what was asked for.
func checkRedirect(to *http.Request, via []*http.Request) error {
	from := via[0].URL
	switch {
	case to.URL.Scheme != from.Scheme || to.URL.Host != from.Host:
		return fmt.Errorf("the server redirects to %s: name that one if it is meant", site.Quoted(to.URL.Scheme+"://"+to.URL.Host))
	case len(via) > webRedirect:
		return fmt.Errorf("more than %d redirects", webRedirect)
	}
	return nil
}

// Get reads an object of up to 64 MiB, or returns ErrNotFound.
func (w *Site) Get(ctx context.Context, key site.Key) ([]byte, error) {
	return w.GetAdmitted(ctx, key, func(_ context.Context, size int64) error {
		if size > webMost {
			return fmt.Errorf("read %s: more than %d MiB: this is no site: %w", key, webMost>>20, object.ErrTooLarge)
		}
		return nil
	})
}

// GetAdmitted is Get of any size that calls admit with the size in bytes before it allocates memory, and returns the error
// of admit, if any. If the server does not say the size, admit is called while the body grows, with a size that it has at
// least, and at the end with that which it has. A server that sends less than 1 KiB a second, over 30 s, is an error.
func (w *Site) GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) (_ []byte, err error) {
	request, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r, err := http.NewRequestWithContext(request, http.MethodGet, w.base+key.URLPath(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	r.Header.Set("User-Agent", "followpress")
	r.Header.Set("X-Signed", "only")            // an edge that asks live first has nothing to check in its answers
	r.Header.Set("Accept-Encoding", "identity") // without it, a server may choose
	answer, err := w.client.Do(r)
	if err != nil {
		return nil, explainWeb(key, err)
	}
	answer.Body = w.pace.paced(request, answer.Body, cancel)
	defer func() { _ = answer.Body.Close() }() // what was read counts
	if err := checkAnswer(key, answer); err != nil {
		return nil, err
	}
	if size := answer.ContentLength; size >= 0 {
		if err := admit(ctx, size); err != nil {
			return nil, err
		}
		body := make([]byte, size)
		if _, err := io.ReadFull(answer.Body, body); err != nil {
			return nil, explainWeb(key, err)
		}
		return body, nil
	}
	return readUnsized(ctx, key, answer.Body, admit)
}

// checkAnswer returns an error unless the server answers with the object. The text beside a status is the server's, and
// may steer a terminal.
func checkAnswer(key site.Key, answer *http.Response) error {
	switch code := answer.StatusCode; {
	case code == http.StatusNotFound:
		return fmt.Errorf("read %s: got status %d: %w", key, code, object.ErrNotFound)
	case code == http.StatusForbidden:
		return fmt.Errorf("read %s: got status %d: %w: name it as s3://BUCKET", key, code, object.ErrForbidden)
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= http.StatusInternalServerError:
		return &object.TemporaryError{Err: fmt.Errorf("read %s: got status %d", key, code)}
	case code != http.StatusOK:
		return fmt.Errorf("read %s: got status %d", key, code)
	}
	if coding := answer.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return fmt.Errorf("read %s: the server answers with Content-Encoding %s, which was not asked for: serve objects as the bucket has them", key, site.Quoted(coding))
	}
	return nil
}

// readUnsized reads a body whose size nobody has said.
func readUnsized(ctx context.Context, key site.Key, from io.Reader, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	var body bytes.Buffer
	for step := int64(webUnsized); ; step = int64(body.Len()) { // the memory is twice what was admitted at most
		n, err := io.CopyN(&body, from, step)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, explainWeb(key, err)
		}
		if admitErr := admit(ctx, int64(body.Len())); admitErr != nil {
			return nil, admitErr
		}
		if n < step {
			return body.Bytes(), nil
		}
	}
}

func explainWeb(key site.Key, err error) error {
	err = fmt.Errorf("read %s: %w", key, err)
	if object.IsNetworkError(err) {
		return &object.TemporaryError{Err: err}
	}
	if host := object.UnknownHost(err); host != "" {
		return fmt.Errorf("%w: DNS knows no host %s: check the address, or the machine's DNS", err, host)
	}
	return err
}

// Close closes connections.
func (w *Site) Close() error {
	w.client.CloseIdleConnections()
	return nil
}
