package storage

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/followpress/followpress/site"
)

// S3Options say how to reach a server.
type S3Options struct {
	Endpoint    string            // URL; "" means Amazon S3
	Region      string            // "" means AWS_REGION, AWS_DEFAULT_REGION, what the endpoint's name says, or us-east-1
	Connections int               // that are kept open; 0 means 64
	Log         *slog.Logger      // every request, at level debug; nil means none
	Transport   http.RoundTripper // nil means one of its own
}

// S3 is a bucket, or a part of it below a prefix, of an S3-compatible server. It
// does not try again: that is for callers, who know how long they want to wait.
type S3 struct {
	core   minio.Core
	bucket string
	prefix string
	amazon bool // which is known not to unpack archives
	meter  *meter
	// foreign is whether an ETag was seen that is not the MD5 of what was put: bodies get
	// their MD5 as metadata then. Other buckets need none, and clients would get it too.
	foreign atomic.Bool
}

// defaultConnections suits a server at a distance of some ten milliseconds.
const defaultConnections = 64

// OpenS3 makes a client of the bucket at a location. It asks nothing of the server.
// Credentials come from AWS_ACCESS_KEY_ID and its like, the shared credentials
// file, or the role of the machine.
func OpenS3(ctx context.Context, at Location, o S3Options) (*S3, error) {
	endpoint, err := parseEndpoint(o.Endpoint)
	if err != nil {
		return nil, err
	}
	secure := endpoint.Scheme == "https"
	transport := o.Transport
	if transport == nil {
		own, err := minio.DefaultTransport(secure)
		if err != nil {
			return nil, fmt.Errorf("make a transport: %w", err)
		}
		connections := o.Connections
		if connections == 0 {
			connections = defaultConnections
		}
		own.MaxIdleConnsPerHost, own.MaxIdleConns = connections, connections
		own.ResponseHeaderTimeout = 0  // the caller's context bounds a request
		own.WriteBufferSize = 32 << 10 // most objects go out in one piece with their headers
		transport = fence(own)
	}
	m := newMeter(transport, o.Log)
	creds := newCredentials()
	if _, err := getCredentials(ctx, creds); err != nil {
		return nil, err
	}
	client, err := minio.NewCore(endpoint.Host, &minio.Options{
		Creds: creds, Secure: secure, Transport: m, Region: region(o.Region, endpoint), MaxRetries: 1,
	})
	if err != nil {
		return nil, fmt.Errorf("open the bucket: %w", err)
	}
	return &S3{core: *client, bucket: at.Bucket, prefix: at.Prefix, amazon: strings.HasSuffix(endpoint.Hostname(), ".amazonaws.com"), meter: m}, nil
}

// roleTimeout is short: a machine with a role has a server of credentials nearby,
// others have none.
const roleTimeout = 3 * time.Second

func newCredentials() *credentials.Credentials {
	return credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{},
		&credentials.FileAWSCredentials{},
		&credentials.IAM{Client: &http.Client{Timeout: roleTimeout, Transport: &http.Transport{}}}, // not through a proxy
	})
}

// AWSCredentials finds the credentials of AWS as OpenS3 does, for other services of
// AWS. What it gives finds them again when they have run out.
func AWSCredentials() func(context.Context) (credentials.Value, error) {
	creds := newCredentials()
	return func(ctx context.Context) (credentials.Value, error) { return getCredentials(ctx, creds) }
}

func getCredentials(ctx context.Context, creds *credentials.Credentials) (credentials.Value, error) {
	type result struct {
		value credentials.Value
		err   error
	}
	got := make(chan result, 1)
	go func() {
		value, err := creds.GetWithContext(nil)
		if err == nil && (value.AccessKeyID == "" || value.SecretAccessKey == "") {
			err = errors.New("no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE to one that is in the shared credentials file, or run where there is a role")
		}
		got <- result{value, err}
	}()
	select {
	case r := <-got:
		return r.value, r.err
	case <-ctx.Done():
		return credentials.Value{}, ctx.Err()
	}
}

func parseEndpoint(text string) (*url.URL, error) {
	if text == "" {
		text = "https://s3.amazonaws.com"
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return nil, errors.New("the endpoint is not a URL like https://HOST or http://HOST:PORT")
	}
	if u.User != nil {
		return nil, errors.New("the endpoint has a user: credentials go into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	return u, nil
}

// region saves the request that asks for the bucket's region.
func region(chosen string, endpoint *url.URL) string {
	for _, r := range []string{chosen, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION")} {
		if r != "" {
			return r
		}
	}
	host := strings.TrimPrefix(strings.TrimPrefix(endpoint.Hostname(), "s3."), "dualstack.")
	if r, ok := strings.CutSuffix(host, ".amazonaws.com"); ok {
		return r
	}
	return "us-east-1"
}

// Now is the time by the server's clock, as far as its answers have told it.
func (s *S3) Now() time.Time { return s.meter.now() }

// Requests counts what was asked of the server so far, by kind.
func (s *S3) Requests() map[Request]int { return s.meter.requests() }

// largestGrowth bounds what is set aside for a body by the word of a server alone.
const largestGrowth = 1 << 20

// largestAdmitted is the same where somebody has admitted it.
const largestAdmitted = 256 << 20

// Get reads an object; ErrNotFound if there is none.
func (s *S3) Get(ctx context.Context, key site.Key) ([]byte, error) {
	body, _, err := s.Read(ctx, key)
	return body, err
}

// Read reads an object; ErrNotFound if there is none.
func (s *S3) Read(ctx context.Context, key site.Key) ([]byte, Info, error) {
	stream, info, _, err := s.core.GetObject(ctx, s.bucket, s.name(key), minio.GetObjectOptions{})
	if err != nil {
		return nil, Info{}, explain("get", key, err)
	}
	defer stream.Close() // it was read to its end, or failed before
	body, err := readWhole(stream, info.Size, largestGrowth)
	if err != nil {
		return nil, Info{}, explain("get", key, err)
	}
	return body, Info{Key: key, Size: int64(len(body)), ETag: info.ETag, Modified: info.LastModified,
		contentType: info.ContentType, cacheControl: info.Metadata.Get("Cache-Control")}, nil
}

// Stat is what Read tells of an object beside its body; ErrNotFound if there is none.
func (s *S3) Stat(ctx context.Context, key site.Key) (Info, error) {
	info, err := s.core.StatObject(ctx, s.bucket, s.name(key), minio.StatObjectOptions{})
	if err != nil {
		return Info{}, explain("look at", key, err)
	}
	return Info{Key: key, Size: info.Size, ETag: info.ETag, Modified: info.LastModified,
		contentType: info.ContentType, cacheControl: info.Metadata.Get("Cache-Control")}, nil
}

// GetAdmitted is Get that takes memory for the object only when its size was admitted.
func (s *S3) GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	stream, info, _, err := s.core.GetObject(ctx, s.bucket, s.name(key), minio.GetObjectOptions{})
	if err != nil {
		return nil, explain("get", key, err)
	}
	defer stream.Close() // it was read to its end, or failed before
	size := info.Size
	if size < 0 { // the server does not tell it
		size = largestGrowth
	}
	if err := admit(ctx, size); err != nil {
		return nil, err
	}
	body, err := readWhole(stream, info.Size, largestAdmitted)
	if err != nil {
		return nil, explain("get", key, err)
	}
	return body, nil
}

// readWhole reads a body of a size, which is negative where the server did not tell it.
// Up to most bytes are set aside by its word. The body takes no more memory than it
// must: it may be kept for long.
func readWhole(stream io.Reader, size, most int64) ([]byte, error) {
	if 0 <= size && size <= most {
		body := make([]byte, size)
		_, err := io.ReadFull(stream, body)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return body, err
	}
	body, err := io.ReadAll(stream)
	if err == nil && size >= 0 && int64(len(body)) != size {
		err = io.ErrUnexpectedEOF
	}
	return bytes.Clone(body), err
}

// Put stores an object if the condition holds, ErrCondition if not, and gives its
// ETag. The server checks the MD5; ErrDamaged means that the body is not what its
// entry says.
func (s *S3) Put(ctx context.Context, o Object, condition Condition) (etag string, err error) {
	options := putOptions(o)
	if s.foreign.Load() {
		options.UserMetadata = map[string]string{digestName: o.MD5.String()}
	}
	switch condition {
	case Always:
	case IfAbsent:
		options.SetMatchETagExcept("*")
	default:
		options.SetMatchETag(string(condition))
	}
	stored, err := s.core.PutObject(ctx, s.bucket, s.name(o.Key), newBody(ctx, o.Body), int64(len(o.Body)),
		base64.StdEncoding.EncodeToString(o.MD5[:]), "", options)
	if err != nil {
		if isDigestError(err) {
			if damaged := o.check(); damaged != nil {
				return "", damaged
			}
			return "", &temporaryError{fmt.Errorf("put %s: damaged on its way: %w", o.Key, err)}
		}
		err = explain("put", o.Key, err)
		if errors.Is(err, ErrNotFound) && condition != Always && condition != IfAbsent { // there is none to have the ETag
			err = fmt.Errorf("put %s: %w", o.Key, ErrCondition)
		}
		return "", err
	}
	if stored.ETag != o.MD5.String() {
		s.foreign.Store(true)
	}
	return stored.ETag, nil
}

// putOptions leaves the SHA-256 of the body out of the signature: the signature
// covers the MD5, which the server checks.
func putOptions(o Object) minio.PutObjectOptions {
	return minio.PutObjectOptions{ContentType: o.ContentType, CacheControl: o.CacheControl, DisableContentSha256: true, DisableMultipart: true}
}

// A body ends where its context does. It asks at every piece rather than wait to be
// cancelled: when a process that was stopped goes on, no timer may have fired yet.
type body struct {
	*bytes.Reader
	ctx context.Context
}

func newBody(ctx context.Context, content []byte) *body { return &body{bytes.NewReader(content), ctx} }

// Read reads on while the context lives.
func (b *body) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.Reader.Read(p)
}

// WriteTo is Read in a loop; that of bytes.Reader would not ask.
func (b *body) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{b})
}

// Delete removes up to 1,000 objects with one request, whether they are there or not.
func (s *S3) Delete(ctx context.Context, keys []site.Key) error {
	if len(keys) == 1 {
		return explainDelete(keys[0], s.core.RemoveObject(ctx, s.bucket, s.name(keys[0]), minio.RemoveObjectOptions{}))
	}
	results, err := s.core.RemoveObjectsWithIter(ctx, s.bucket, func(yield func(minio.ObjectInfo) bool) {
		for _, key := range keys {
			if !yield(minio.ObjectInfo{Key: s.name(key)}) {
				return
			}
		}
	}, minio.RemoveObjectsOptions{})
	if err != nil {
		return explain("delete", keys[0], err)
	}
	var failed error
	silent := make(map[site.Key]bool, len(keys)) // what the answer has not named
	for _, key := range keys {
		silent[key] = true
	}
	for result := range results {
		key := site.Key(strings.TrimPrefix(result.ObjectName, s.prefix))
		delete(silent, key)
		if err := explainDelete(key, result.Err); failed == nil {
			failed = err
		}
	}
	if failed == nil && ctx.Err() != nil { // the library just stops
		failed = explain("delete", keys[0], ctx.Err())
	}
	if failed != nil {
		return failed
	}
	// The request asks for a word on each object. Where the server, or the library, keeps
	// one to itself, a request for that object alone has a plain answer.
	for _, key := range slices.Sorted(maps.Keys(silent)) {
		if err := s.Delete(ctx, []site.Key{key}); err != nil {
			return err
		}
	}
	return nil
}

// MaxDelete is how many keys one Delete takes.
const MaxDelete = 1000

// List lists the objects whose keys begin with prefix and come after a key ("" for
// all). It stops at the first error of found.
func (s *S3) List(ctx context.Context, prefix, after site.Key, found func(Info) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	options := minio.ListObjectsOptions{Prefix: s.name(prefix), Recursive: true}
	if after != "" {
		options.StartAfter = s.name(after)
	}
	for object := range s.core.ListObjectsIter(ctx, s.bucket, options) {
		if object.Err != nil {
			return explain("list", prefix, object.Err)
		}
		key := site.Key(strings.TrimPrefix(object.Key, s.prefix))
		if err := found(Info{Key: key, Size: object.Size, ETag: object.ETag, Modified: object.LastModified}); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil { // the library just stops
		return explain("list", prefix, err)
	}
	return nil
}

// name is a key's name in the bucket.
func (s *S3) name(key site.Key) string { return s.prefix + string(key) }
