// Package web reads a site from an HTTPS server.
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
	webMost     = 64 << 20 // maximum bytes of an object in Get, more than any of a site has
	webUnsized  = 64 << 10 // bytes read before the first call of admit if the server does not state the size
	webTimeout  = 2 * time.Minute
	webAnswer   = 30 * time.Second // until the response header arrives
	webRedirect = 5                // maximum number of redirects, all on the same server
)

// A Site is an online site: an edge, a fallback, or a public bucket. It can be read by key, but not listed.
type Site struct {
	base   string // without a slash at the end
	client *http.Client
	pace   pace
}

// Is reports whether text is a URL for Open.
func Is(text string) bool {
	return strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")
}

// Open opens https://HOST or https://HOST/PREFIX. It sends no request.
func Open(text string) (*Site, error) {
	u, err := url.Parse(text)
	if err != nil || !Is(text) || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the URL of a site is https://HOST or https://HOST/PATH")
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableCompression: true, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute,
		TLSHandshakeTimeout: webAnswer, ResponseHeaderTimeout: webAnswer,
	}
	return &Site{base: strings.TrimSuffix(u.String(), "/"), client: &http.Client{Transport: transport, Timeout: webTimeout, CheckRedirect: checkRedirect}}, nil
}

// checkRedirect rejects redirects to other servers: the user named this one.
func checkRedirect(to *http.Request, via []*http.Request) error {
	from := via[0].URL
	switch {
	case to.URL.Scheme != from.Scheme || to.URL.Host != from.Host:
		return fmt.Errorf("the server redirects to %s; name that one if it is intended", site.Quoted(to.URL.Scheme+"://"+to.URL.Host))
	case len(via) > webRedirect:
		return fmt.Errorf("more than %d redirects", webRedirect)
	}
	return nil
}

// Get reads an object of up to 64 MiB, or returns ErrNotFound.
func (w *Site) Get(ctx context.Context, key site.Key) ([]byte, error) {
	return w.GetAdmitted(ctx, key, func(_ context.Context, size int64) error {
		if size > webMost {
			return fmt.Errorf("read %s: more than %d MiB, so this is not a site: %w", key, webMost>>20, object.ErrTooLarge)
		}
		return nil
	})
}

// GetAdmitted is like Get, but without a limit of its own. It first calls admit with the size in bytes, before it
// allocates memory, and returns admit's error, if any. If the server does not state the size, it calls admit with a
// lower bound while the body grows, and at the end with the size. It fails if the server sends less than 1 KiB a
// second over 30 s of reading.
func (w *Site) GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) (_ []byte, err error) {
	request, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r, err := http.NewRequestWithContext(request, http.MethodGet, w.base+key.URLPath(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	r.Header.Set("User-Agent", "followpress")
	r.Header.Set("X-Signed", "only")            // edges that prefer unsigned live answers must not use them
	r.Header.Set("Accept-Encoding", "identity") // without it, a server may compress
	answer, err := w.client.Do(r)
	if err != nil {
		return nil, explainWeb(key, err)
	}
	answer.Body = w.pace.paced(request, answer.Body, cancel)
	defer func() { _ = answer.Body.Close() }() // the body is complete, or another error is returned
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

// checkAnswer returns an error unless the response holds the object. It omits the status text, which comes from the
// server and could control a terminal.
func checkAnswer(key site.Key, answer *http.Response) error {
	switch code := answer.StatusCode; {
	case code == http.StatusNotFound:
		return fmt.Errorf("read %s: got status %d: %w", key, code, object.ErrNotFound)
	case code == http.StatusForbidden:
		return fmt.Errorf("read %s: got status %d: %w; name the bucket as s3://BUCKET", key, code, object.ErrForbidden)
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= http.StatusInternalServerError:
		return &object.TemporaryError{Err: fmt.Errorf("read %s: got status %d", key, code)}
	case code != http.StatusOK:
		return fmt.Errorf("read %s: got status %d", key, code)
	}
	if coding := answer.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return fmt.Errorf("read %s: unexpected Content-Encoding %s; serve objects as stored", key, site.Quoted(coding))
	}
	return nil
}

// readUnsized reads a body of unknown size.
func readUnsized(ctx context.Context, key site.Key, from io.Reader, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	var body bytes.Buffer
	for step := int64(webUnsized); ; step = int64(body.Len()) { // allocates at most twice the admitted size
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
		return fmt.Errorf("%w; check the address (DNS does not know %s)", err, host)
	}
	return err
}

// Close closes idle connections.
func (w *Site) Close() error {
	w.client.CloseIdleConnections()
	return nil
}
