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

// A matchForm is how a server wants the ETag in If-Match. HTTP has quotes; Ceph and DigitalOcean
// Spaces have been reported to refuse those, and behind some proxies an ETag is a weak one.
type matchForm int32

// The forms, in the order in which they are tried.
const (
	unknownForm matchForm = iota
	quotedForm
	unquotedForm
	weakForm
	noForm // the server accepts none: it has no conditional writes
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

// bareETag is an ETag without the mark of a weak one and without quotes. The library removes quotes
// only.
func bareETag(etag string) string {
	return strings.Trim(strings.TrimPrefix(etag, "W/"), `"`)
}

// putMatching puts an object if the stored one has the ETag. A server whose form of If-Match is
// unknown may refuse a condition that holds. So after a refusal the stored ETag is compared: if it is
// the one named, the next form is tried. The first that is accepted is used from then on; if none
// is, the server has no conditional writes.
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
	return fmt.Errorf("put %s: the server refuses If-Match with the ETag that it names, with quotes, without them and as a weak one: %w", o.Key, object.ErrUnsupported)
}

type formKey struct{}

// withForm makes a matchSigner send If-Match in a form.
func withForm(ctx context.Context, form matchForm, etag string) context.Context {
	if form == quotedForm { // the library's own
		return ctx
	}
	return context.WithValue(ctx, formKey{}, form.header(etag))
}

// A matchSigner replaces If-Match where withForm asks for that, and signs the request anew, since the
// library always sends quotes and the signature covers the header.
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
