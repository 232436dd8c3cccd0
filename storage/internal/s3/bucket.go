package s3

import (
	"bytes"
	"cmp"
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
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/followpress/followpress/internal/awskeys"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage/internal/object"
)

// Options configure the connection to a server.
type Options struct {
	Endpoint    string            // URL; "" means Amazon S3
	Region      string            // "" means AWS_REGION, AWS_DEFAULT_REGION, the region in the endpoint's name, or us-east-1
	WriteBuffer int               // bytes per connection; 0 means 32 KiB, which holds most objects with their headers
	Log         *slog.Logger      // logs every request at level debug; nil means none
	Transport   http.RoundTripper // nil means a new transport
}

// A Bucket is a bucket of an S3-compatible server, or the part of it below a prefix. It does not retry.
type Bucket struct {
	core   minio.Core
	bucket string
	prefix string
	amazon bool // Amazon S3, which does not unpack archives
	google bool // Google Cloud Storage, where the library deletes objects one by one
	meter  *meter
	// nonMD5ETags is set once an ETag is not the MD5 of its object. From then on, Put stores the MD5 as metadata.
	// Other buckets do without, because readers would receive that header too.
	nonMD5ETags atomic.Bool
	matchForm   atomic.Int32 // a matchForm
}

// idleConnections suits a latency of some ten milliseconds.
const idleConnections = 64

// Open returns a bucket, or the part of it below a prefix that ends in a slash. It sends no request to the server.
// Credentials come from the environment (AWS_ACCESS_KEY_ID and so on), the shared credentials file, or the machine's
// role. Open fails if it finds none.
func Open(ctx context.Context, bucket, prefix string, o Options) (*Bucket, error) {
	endpoint, err := parseEndpoint(o.Endpoint)
	if err != nil {
		return nil, err
	}
	secure := endpoint.Scheme == "https"
	transport := o.Transport
	if transport == nil {
		t, err := minio.DefaultTransport(secure)
		if err != nil {
			return nil, fmt.Errorf("make a transport: %w", err)
		}
		t.MaxIdleConnsPerHost, t.MaxIdleConns = idleConnections, idleConnections
		t.ResponseHeaderTimeout = 0 // the caller's context limits a request
		t.WriteBufferSize = cmp.Or(o.WriteBuffer, 32<<10)
		transport = fence(t)
	}
	m := newMeter(transport, o.Log)
	creds := awskeys.New()
	if _, err := awskeys.Get(ctx, creds); err != nil {
		return nil, err
	}
	in := region(o.Region, endpoint)
	client, err := minio.NewCore(endpoint.Host, &minio.Options{
		Creds: creds, Secure: secure, Transport: s3Only{matchSigner{m, creds, in}}, Region: in, MaxRetries: 1,
	})
	if err != nil {
		return nil, fmt.Errorf("open the bucket: %w", err)
	}
	return &Bucket{core: *client, bucket: bucket, prefix: prefix, meter: m,
		amazon: strings.HasSuffix(endpoint.Hostname(), ".amazonaws.com"), google: s3utils.IsGoogleEndpoint(*endpoint)}, nil
}

func parseEndpoint(text string) (*url.URL, error) {
	if text == "" {
		text = "https://s3.amazonaws.com"
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" {
		return nil, errors.New("the endpoint is not a URL like https://HOST or http://HOST:PORT")
	}
	if u.User != nil {
		return nil, errors.New("the endpoint has a user; put credentials into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	if path := strings.Trim(u.Path, "/"); path != "" {
		return nil, fmt.Errorf("the endpoint has the path %q; use %s://%s, and name the bucket as s3://BUCKET", path, u.Scheme, u.Host)
	}
	return u, nil
}

// region returns the region to sign for, to save a request for the bucket's region.
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

// Now returns the time by the server's clock, as of its last response.
func (s *Bucket) Now() time.Time { return s.meter.now() }

// Requests returns the number of requests so far, by kind.
func (s *Bucket) Requests() map[object.Request]int { return s.meter.requests() }

// A bounded stream fails after more than left bytes.
type bounded struct {
	io.Reader
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("the server sent more bytes than any such object has: %w", object.ErrTooLarge)
	}
	return n, err
}

// String returns the location of the bucket, for messages.
func (s *Bucket) String() string { return strings.TrimSuffix("s3://"+s.bucket+"/"+s.prefix, "/") }

// Close does nothing: idle connections close by themselves.
func (s *Bucket) Close() error { return nil }

// Get reads an object, or returns ErrNotFound.
func (s *Bucket) Get(ctx context.Context, key site.Key) ([]byte, error) {
	body, _, err := s.Read(ctx, key)
	return body, err
}

// Read reads an object with its Info, or returns ErrNotFound.
func (s *Bucket) Read(ctx context.Context, key site.Key) ([]byte, object.Info, error) {
	body, info, err := s.read(ctx, key)
	if err != nil {
		return nil, object.Info{}, err
	}
	return body, infoOf(key, info), nil
}

func (s *Bucket) read(ctx context.Context, key site.Key) (body []byte, info minio.ObjectInfo, err error) {
	stream, info, _, err := s.core.GetObject(ctx, s.bucket, s.name(key), minio.GetObjectOptions{})
	if err != nil {
		return nil, info, explain("get", key, err)
	}
	defer stream.Close() // read completely, or failed before
	if body, err = readWhole(&bounded{stream, object.Most(key)}, info.Size, object.MaxUnchecked); err != nil {
		return nil, info, explain("get", key, err)
	}
	info.Size = int64(len(body))
	return body, info, nil
}

// Stat returns the Info of an object without reading it, or ErrNotFound.
func (s *Bucket) Stat(ctx context.Context, key site.Key) (object.Info, error) {
	info, err := s.core.StatObject(ctx, s.bucket, s.name(key), minio.StatObjectOptions{})
	if err != nil {
		return object.Info{}, s.explainHead(ctx, "look at", key, err)
	}
	return infoOf(key, info), nil
}

func infoOf(key site.Key, o minio.ObjectInfo) object.Info {
	return object.Info{Key: key, Size: o.Size, ETag: bareETag(o.ETag), Modified: o.LastModified}
}

// GetAdmitted is like Get, but first calls admit with the size in bytes, before it allocates memory. It returns
// admit's error, if any.
func (s *Bucket) GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	stream, info, _, err := s.core.GetObject(ctx, s.bucket, s.name(key), minio.GetObjectOptions{})
	if err != nil {
		return nil, explain("get", key, err)
	}
	defer stream.Close() // read completely, or failed before
	size := info.Size
	var from io.Reader = stream
	if size < 0 { // unknown
		size = object.MaxUnchecked
		from = &bounded{stream, size}
	}
	if err := object.CheckSize(key, size); err != nil {
		return nil, err
	}
	if err := admit(ctx, size); err != nil {
		return nil, err
	}
	body, err := readWhole(from, info.Size, object.MaxAdmitted)
	if err != nil {
		return nil, explain("get", key, err)
	}
	return body, nil
}

// readWhole reads a body of the given size, negative if unknown. It trusts a size up to maxAlloc bytes; a larger body
// grows as it arrives. The result has no spare capacity, because callers may cache it for long.
func readWhole(stream io.Reader, size, maxAlloc int64) ([]byte, error) {
	if 0 <= size && size <= maxAlloc {
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

// Put stores an object and returns its ETag. It returns ErrCondition if the condition does not hold, ErrDamaged if
// the body differs from its digest, which the server checks, and ErrUnsupported if the server has no conditional
// writes. If the server stored other bytes, the error is temporary and comes with their ETag.
func (s *Bucket) Put(ctx context.Context, o object.Object, condition object.Condition) (etag string, err error) {
	options := putOptions(o)
	if s.nonMD5ETags.Load() {
		options.UserMetadata = maps.Clone(o.Metadata)
		if options.UserMetadata == nil {
			options.UserMetadata = map[string]string{}
		}
		options.UserMetadata[digestMetadata] = o.MD5.String()
	}
	var stored minio.UploadInfo
	switch condition {
	case object.Always, object.IfAbsent:
		if condition == object.IfAbsent {
			options.SetMatchETagExcept("*")
		}
		stored, err = s.putObject(ctx, o, options)
	default:
		stored, err = s.putMatching(ctx, o, string(condition), options)
		if errors.Is(err, object.ErrNotFound) { // no object has the ETag
			err = fmt.Errorf("put %s: %w", o.Key, object.ErrCondition)
		}
	}
	if err != nil {
		if errors.Is(err, errOnItsWay) {
			err = cmp.Or(o.Check(), err) // damaged before it was sent?
		}
		return "", err
	}
	if etag, err = s.storedETag(ctx, o.Key, stored); err != nil {
		return "", err
	}
	if etag == "" && condition != object.Always {
		return "", fmt.Errorf("put %s: the server returns no ETag: %w", o.Key, object.ErrUnsupported)
	}
	if etag != o.MD5.String() && !s.nonMD5ETags.Load() {
		if err := s.confirm(ctx, o); err != nil {
			return etag, err
		}
		s.nonMD5ETags.Store(true)
	}
	return etag, nil
}

// storedETag returns the ETag of a stored object. Some servers omit it from the response to a put.
func (s *Bucket) storedETag(ctx context.Context, key site.Key, stored minio.UploadInfo) (string, error) {
	if stored.ETag != "" {
		return bareETag(stored.ETag), nil
	}
	is, err := s.Stat(ctx, key)
	return is.ETag, err
}

func (s *Bucket) putObject(ctx context.Context, o object.Object, options minio.PutObjectOptions) (minio.UploadInfo, error) {
	return s.putBody(ctx, "put "+string(o.Key), o.Key, o.Body, o.MD5, options)
}

// putBody sends a body, whose digest the server checks. Errors begin with doing.
func (s *Bucket) putBody(ctx context.Context, doing string, key site.Key, content []byte, digest site.MD5, options minio.PutObjectOptions) (minio.UploadInfo, error) {
	stored, err := s.core.PutObject(ctx, s.bucket, s.name(key), newBody(ctx, content), int64(len(content)),
		base64.StdEncoding.EncodeToString(digest[:]), "", options)
	return stored, explainPut(doing, err)
}

// confirm reads back an object. An ETag other than the MD5 of the body means either that ETags are something else, as
// under SSE-KMS, or that the server stored other bytes.
func (s *Bucket) confirm(ctx context.Context, o object.Object) error {
	body, err := s.Get(ctx, o.Key)
	if err == nil && !bytes.Equal(body, o.Body) {
		err = &object.TemporaryError{Err: fmt.Errorf("put %s: the server stored other bytes than were sent", o.Key)}
	}
	return err
}

// putOptions omits the SHA-256 of the body from the signature, which already covers the MD5.
func putOptions(o object.Object) minio.PutObjectOptions {
	return minio.PutObjectOptions{ContentType: o.ContentType, CacheControl: o.CacheControl, UserMetadata: o.Metadata, DisableContentSha256: true, DisableMultipart: true}
}

// A body fails once its context has ended. It checks the context before every read, because a resumed process may run
// before its timers fire.
type body struct {
	*bytes.Reader
	ctx context.Context
}

func newBody(ctx context.Context, content []byte) *body { return &body{bytes.NewReader(content), ctx} }

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.Reader.Read(p)
}

// WriteTo reads in a loop, so that Read checks the context. The method of bytes.Reader would bypass it.
func (b *body) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{b})
}

// Delete removes up to MaxDelete objects with one request. Missing objects are not errors. It
// returns ErrUnsupported, and removes nothing, for several objects on a server that takes one per
// request.
func (s *Bucket) Delete(ctx context.Context, keys []site.Key) error {
	if len(keys) == 1 {
		return explainDelete(keys[0], s.core.RemoveObject(ctx, s.bucket, s.name(keys[0]), minio.RemoveObjectOptions{}))
	}
	if s.google { // minio-go would delete one after the other, for minutes
		return fmt.Errorf("delete several objects: %w", object.ErrUnsupported)
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
	silent := make(map[site.Key]bool, len(keys)) // keys missing from the response
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
	if failed == nil && ctx.Err() != nil { // minio-go just stops
		failed = explain("delete", keys[0], ctx.Err())
	}
	if failed != nil {
		return failed
	}
	// The response should name every object. If the server or the library omits one, delete that object alone.
	for _, key := range slices.Sorted(maps.Keys(silent)) {
		if err := s.Delete(ctx, []site.Key{key}); err != nil {
			return err
		}
	}
	return nil
}

// MaxDelete is the maximum number of keys per Delete.
const MaxDelete = 1000

// List calls found for each object whose key begins with prefix and is greater than after ("" for all), in key order
// and never concurrently. It stops at the first error of found and returns it. Folder placeholders, as consoles
// create them, are omitted.
func (s *Bucket) List(ctx context.Context, prefix, after site.Key, found func(object.Info) error) error {
	return s.list(ctx, prefix, after, true, found)
}

// ListFolder is like List, but lists only keys without a slash.
func (s *Bucket) ListFolder(ctx context.Context, after site.Key, found func(object.Info) error) error {
	return s.list(ctx, "", after, false, func(info object.Info) error {
		if strings.Contains(string(info.Key), "/") {
			return nil
		}
		return found(info)
	})
}

func (s *Bucket) list(ctx context.Context, prefix, after site.Key, recursive bool, found func(object.Info) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	options := minio.ListObjectsOptions{Prefix: s.name(prefix), Recursive: recursive}
	if after != "" {
		options.StartAfter = s.name(after)
	}
	for listed := range s.core.ListObjectsIter(ctx, s.bucket, options) {
		if listed.Err != nil {
			return explain("list", prefix, listed.Err)
		}
		key := site.Key(strings.TrimPrefix(listed.Key, s.prefix))
		if key == "" || listed.Size == 0 && strings.HasSuffix(string(key), "/") { // a console's folder placeholder
			continue
		}
		if err := found(infoOf(key, listed)); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil { // minio-go just stops
		return explain("list", prefix, err)
	}
	return nil
}

func (s *Bucket) name(key site.Key) string { return s.prefix + string(key) }

// digestMetadata names the metadata with the MD5 of a body whose ETag is another digest. Readers receive it as
// X-Amz-Meta-Followpress-Md5.
const digestMetadata = "Followpress-Md5"

// Digest returns the MD5 of an object's body even if the ETag is another digest, as under SSE-KMS, or ErrNotFound. It
// requests the object's headers, which contain the MD5 if Put had seen such ETags. Otherwise it reads the object,
// because an ETag may look like an MD5 without being one.
func (s *Bucket) Digest(ctx context.Context, key site.Key) (site.MD5, error) {
	info, err := s.core.StatObject(ctx, s.bucket, s.name(key), minio.StatObjectOptions{})
	if err != nil {
		return site.MD5{}, s.explainHead(ctx, "look at", key, err)
	}
	var digest site.MD5
	if digest.UnmarshalText([]byte(info.UserMetadata[digestMetadata])) == nil {
		return digest, nil
	}
	body, err := s.Get(ctx, key)
	return site.Sum(body), err
}
