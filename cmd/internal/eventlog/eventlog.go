// Package eventlog reads the log of all events from where a site is published: a bucket, a folder, or a
// web server in front of one.
package eventlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/followpress/followpress/internal/retry"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source/bundle"
	"github.com/followpress/followpress/storage"
)

const (
	attemptTime = 2 * time.Minute // of a request, whose answer has a bundle at most
	attempts    = 7
)

// Check is an error if a text is no place of a log.
func Check(from string) error {
	if isWeb(from) {
		u, err := url.Parse(from)
		if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return errors.New("the URL must be like https://HOST or https://HOST/PATH")
		}
		return nil
	}
	_, err := storage.ParseLocation(from)
	if err != nil {
		return fmt.Errorf("%w, or https://HOST", err)
	}
	return nil
}

func isWeb(from string) bool {
	return strings.HasPrefix(from, "https://") || strings.HasPrefix(from, "http://")
}

// Open returns what reads objects of the log at https://HOST, s3://BUCKET or file:///FOLDER, and what
// closes it. Requests that fail for a passing reason are made again. It sends no request itself.
func Open(ctx context.Context, from string, o storage.S3Options) (bundle.Fetch, func() error, error) {
	if err := Check(from); err != nil {
		return nil, nil, err
	}
	if isWeb(from) {
		client := &http.Client{Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DisableCompression: true, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute,
		}}
		base := strings.TrimSuffix(from, "/") + "/"
		return persistent(func(ctx context.Context, name string, most int64) ([]byte, error) {
			return get(ctx, client, base+string(site.LogKey(name)), most)
		}, func(err error) bool { return errors.Is(err, errPassing) }), func() error { client.CloseIdleConnections(); return nil }, nil
	}
	at, err := storage.ParseLocation(from)
	if err != nil {
		return nil, nil, err
	}
	bucket, err := storage.OpenBucket(ctx, at, o)
	if err != nil {
		return nil, nil, err
	}
	return Of(bucket), bucket.Close, nil
}

// Of is Open of a bucket that is open.
func Of(bucket storage.Site) bundle.Fetch {
	return persistent(func(ctx context.Context, name string, most int64) ([]byte, error) {
		body, err := bucket.GetAdmitted(ctx, site.LogKey(name), func(_ context.Context, size int64) error {
			if size > most {
				return bundle.ErrTooLarge
			}
			return nil
		})
		if errors.Is(err, storage.ErrNotFound) {
			err = fmt.Errorf("%w: %w", bundle.ErrNone, err)
		}
		return body, err
	}, storage.Temporary)
}

// persistent makes requests again that may succeed then.
func persistent(fetch bundle.Fetch, retryable func(error) bool) bundle.Fetch {
	policy := retry.Policy{Retryable: retryable, First: 200 * time.Millisecond, Longest: 5 * time.Second, Attempts: attempts, Hint: "check the address, and that the server is up"}
	return func(ctx context.Context, name string, most int64) (body []byte, err error) {
		err = policy.Do(ctx, func() error {
			attempt, cancel := context.WithTimeout(ctx, attemptTime)
			defer cancel()
			body, err = fetch(attempt, name, most)
			return err
		})
		return body, err
	}
}

// errPassing marks errors that are worth another attempt.
var errPassing = errors.New("the request failed")

func get(ctx context.Context, client *http.Client, url string, most int64) (_ []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "followpress")
	request.Header.Set("Accept-Encoding", "identity") // without it, a server may choose
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errPassing, err)
	}
	defer func() { _ = answer.Body.Close() }() // what was read counts
	switch code := answer.StatusCode; {
	case code == http.StatusOK:
	case code == http.StatusNotFound:
		return nil, fmt.Errorf("%w: status %d", bundle.ErrNone, code) // the text beside it is the server's
	case code == http.StatusTooManyRequests || code >= http.StatusInternalServerError:
		return nil, fmt.Errorf("%w: %s answers with status %d", errPassing, url, code)
	default:
		return nil, fmt.Errorf("%s answers with status %d", url, code)
	}
	if coding := answer.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, fmt.Errorf("%s answers with Content-Encoding %s, which was not asked for: serve %s* as the bucket has it", url, site.Quoted(coding), site.LogPrefix)
	}
	if answer.ContentLength > most {
		return nil, bundle.ErrTooLarge
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errPassing, err)
	case int64(len(body)) > most:
		return nil, bundle.ErrTooLarge
	}
	return body, nil
}
