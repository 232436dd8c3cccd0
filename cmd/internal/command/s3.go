package command

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/parts"
)

// S3 are the flags for the server of buckets.
type S3 struct {
	Endpoint Endpoint `placeholder:"URL" env:"FOLLOWPRESS_ENDPOINT,AWS_ENDPOINT_URL_S3,AWS_ENDPOINT_URL" help:"S3-compatible server for s3://…; Amazon S3 by default."`
	Region   string   `placeholder:"NAME" help:"Region of the bucket; by default AWS_REGION, or us-east-1."`
}

// Server returns the connection options.
func (s *S3) Server() storage.S3Options {
	return storage.S3Options{Endpoint: string(s.Endpoint), Region: s.Region}
}

// An Endpoint is the URL of a server, or "".
type Endpoint string

// UnmarshalText rejects non-URLs, such as HOST:PORT, before any work.
func (e *Endpoint) UnmarshalText(text []byte) error {
	*e = Endpoint(text)
	u, err := url.Parse(string(text))
	if *e == "" || err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		return nil
	}
	if host, port, ok := strings.Cut(string(text), ":"); ok && host != "" && !strings.ContainsAny(port, ":/@") {
		return fmt.Errorf("%[1]s is not a URL; use http://%[1]s or https://%[1]s", text)
	}
	return fmt.Errorf("want a URL like https://HOST or http://HOST:PORT")
}

// OpenSite opens a site: a folder, a .tar file, parts, s3://… or file:///…. It sends no request.
func OpenSite(ctx context.Context, text string, server storage.S3Options) (storage.Site, error) {
	if _, parts := parts.At(text); parts || !strings.Contains(text, "://") {
		return storage.OpenSite(ctx, text, server)
	}
	at, err := storage.ParseLocation(text)
	if err != nil {
		return nil, err
	}
	return storage.OpenBucket(ctx, at, server)
}
