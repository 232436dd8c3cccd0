package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/signer"

	"github.com/followpress/followpress/internal/awskeys"
	"github.com/followpress/followpress/storage/internal/object"
)

// A matchForm is the form of the ETag that a server expects in If-Match. HTTP requires quotes. Ceph and DigitalOcean
// Spaces are reported to reject them, and some proxies turn ETags into weak ones.
type matchForm int32

// The forms, in the order of attempts.
const (
	unknownForm matchForm = iota
	quotedForm
	unquotedForm
	weakForm
	noForm // no form works: the server has no conditional writes
)

func (f matchForm) header(etag string) string {
	switch f {
	case unquotedForm:
		return etag
	case weakForm:
		return `W/"` + etag + `"`
	}
	return `"` + etag + `"`
}

// bareETag strips quotes and the prefix of a weak ETag. The library strips quotes only.
func bareETag(etag string) string {
	return strings.Trim(strings.TrimPrefix(etag, "W/"), `"`)
}

// putMatching puts an object if the stored one has the ETag. A server may refuse a condition that holds because it
// expects another form of If-Match. So after a refusal, putMatching compares the stored ETag and, if it is the
// expected one, tries the next form. The first accepted form is used from then on. If none is accepted, the server
// has no conditional writes.
func (s *Bucket) putMatching(ctx context.Context, o object.Object, etag string, options minio.PutObjectOptions) (stored minio.UploadInfo, err error) {
	options.SetMatchETag(etag)
	switch known := matchForm(s.matchForm.Load()); known {
	case unknownForm:
	case noForm:
		return stored, errNoForm(o)
	default:
		return s.putObject(withForm(ctx, known, etag), o, options)
	}
	for form := quotedForm; form < noForm; form++ {
		stored, err = s.putObject(withForm(ctx, form, etag), o, options)
		if err == nil {
			s.matchForm.CompareAndSwap(int32(unknownForm), int32(form))
		}
		if !errors.Is(err, object.ErrCondition) {
			return stored, err
		}
		is, statErr := s.Stat(ctx, o.Key)
		switch {
		case errors.Is(statErr, object.ErrNotFound), statErr == nil && is.ETag != etag:
			return stored, err
		case statErr != nil:
			return stored, statErr
		}
	}
	s.matchForm.CompareAndSwap(int32(unknownForm), int32(noForm))
	return stored, errNoForm(o)
}

func errNoForm(o object.Object) error {
	return fmt.Errorf("put %s: the server refuses If-Match with its own ETag, quoted, unquoted or weak: %w", o.Key, object.ErrUnsupported)
}

type formKey struct{}

// withForm makes matchSigner send If-Match in the given form.
func withForm(ctx context.Context, form matchForm, etag string) context.Context {
	if form == quotedForm { // the library's default
		return ctx
	}
	return context.WithValue(ctx, formKey{}, form.header(etag))
}

// A matchSigner replaces If-Match in requests marked by withForm and signs them again: the library always sends
// quotes, and the signature covers the header.
type matchSigner struct {
	next   http.RoundTripper
	creds  *credentials.Credentials
	region string
}

// RoundTrip implements http.RoundTripper.
func (m matchSigner) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	header, ok := ctx.Value(formKey{}).(string)
	if !ok || r.Header.Get("If-Match") == "" {
		return m.next.RoundTrip(r)
	}
	keys, err := awskeys.Get(ctx, m.creds)
	if err != nil {
		return nil, err
	}
	r = r.Clone(ctx)
	r.Header.Set("If-Match", header)
	return m.next.RoundTrip(signer.SignV4(*r, keys.AccessKeyID, keys.SecretAccessKey, keys.SessionToken, m.region))
}
