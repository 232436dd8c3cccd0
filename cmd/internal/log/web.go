package log

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

const (
	webTimeout = 30 * time.Second
	webMost    = 64 << 20 // bytes of an object, which is far more than any that is read has
)

// A web has the objects of a site that is online: an edge, a fallback, or a public bucket.
type web struct {
	base   string // without a slash at the end
	client http.Client
}

func openWeb(u *url.URL) (*web, error) {
	if u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the URL of a site is like https://HOST, or https://HOST/PATH")
	}
	return &web{strings.TrimSuffix(u.String(), "/"), http.Client{Timeout: webTimeout}}, nil
}

// Get reads an object.
func (w *web) Get(ctx context.Context, key site.Key) (body []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+key.URLPath(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := w.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return nil, storage.ErrNotFound
	case http.StatusForbidden:
		return nil, fmt.Errorf("got status %d: a bucket that nobody may list does not tell what is absent: name it as s3://BUCKET", answer.StatusCode)
	default:
		return nil, fmt.Errorf("got status %d", answer.StatusCode) // the text beside it is the server's
	}
	body, err = io.ReadAll(io.LimitReader(answer.Body, webMost+1))
	if err == nil && len(body) > webMost {
		err = fmt.Errorf("more than %d MiB: this is no site", webMost>>20)
	}
	return body, err
}

// Close closes connections.
func (w *web) Close() error {
	w.client.CloseIdleConnections()
	return nil
}
