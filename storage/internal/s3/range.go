package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/minio/minio-go/v7"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage/internal/object"
)

// ErrRange means that an object ends before the requested offset.
var ErrRange = errors.New("it ends before")

// FillRange fills a buffer with the bytes of an object from an offset. It returns the number of bytes read, which is
// smaller if the object ends early, and the version of the object. It returns ErrRange if the object ends before the
// offset.
func (s *Bucket) FillRange(ctx context.Context, key site.Key, offset int64, into []byte) (n int64, is object.Version, err error) {
	length := int64(len(into))
	stream, _, is, err := s.openRange(ctx, key, minio.GetObjectOptions{}, offset, length)
	if err != nil {
		return 0, is, err
	}
	defer stream.Close() // read completely, or failed before
	n, err = object.Fill(stream, into)
	if err == nil && n < min(length, is.Size-offset) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return n, is, explain("get", key, err)
	}
	return n, is, nil
}

// ReadRange returns length bytes of an object, at least one, from an offset, or ErrCondition if the object no longer
// has the ETag. The caller closes the stream.
func (s *Bucket) ReadRange(ctx context.Context, key site.Key, etag string, offset, length int64) (io.ReadCloser, error) {
	var o minio.GetObjectOptions
	if err := o.SetMatchETag(etag); err != nil {
		return nil, explain("get", key, err)
	}
	stream, sent, _, err := s.openRange(ctx, key, o, offset, length)
	if err == nil && sent != length {
		return nil, errors.Join(fmt.Errorf("get %s: got %d of %d bytes", key, sent, length), stream.Close())
	}
	return stream, err
}

// openRange requests length bytes of an object from an offset. It returns the body, its actual length, and the
// version of the object, or ErrRange if the object ends before the offset.
func (s *Bucket) openRange(
	ctx context.Context, key site.Key, o minio.GetObjectOptions, offset, length int64,
) (body io.ReadCloser, sent int64, is object.Version, err error) {
	if err := o.SetRange(offset, offset+length-1); err != nil {
		return nil, 0, is, err
	}
	stream, info, header, err := s.core.GetObject(ctx, s.bucket, s.name(key), o)
	if minio.ToErrorResponse(err).Code == "InvalidRange" {
		return nil, 0, is, fmt.Errorf("get %s: %w", key, ErrRange)
	} else if err != nil {
		return nil, 0, is, explain("get", key, err)
	}
	is = object.Version{ID: bareETag(info.ETag), Size: info.Size}
	if text := header.Get("Content-Range"); text != "" {
		var first, last int64
		if _, scanErr := fmt.Sscanf(text, "bytes %d-%d/%d", &first, &last, &is.Size); scanErr != nil || first != offset {
			err = fmt.Errorf("get %s: the server sent %q instead of %d bytes from %d on", key, firstLine(text), length, offset)
		}
	} else if offset > 0 {
		err = fmt.Errorf("get %s: the server does not support ranges: %w", key, object.ErrUnsupported)
	}
	if err != nil {
		return nil, 0, is, errors.Join(err, stream.Close())
	}
	return stream, info.Size, is, nil
}

// maxSinglePut is the largest body that PutLarge sends with one request. Servers take at most 5 GiB.
const maxSinglePut = 64 << 20

// PutLarge stores an object of any size. Errors are those of Put.
func (s *Bucket) PutLarge(ctx context.Context, key site.Key, contentType string, body []byte) error {
	options := putOptions(object.Object{ContentType: contentType})
	if len(body) <= maxSinglePut {
		_, err := s.putBody(ctx, "put "+string(key), key, body, site.Sum(body), options)
		return err
	}
	options.DisableMultipart, options.PartSize, options.SendContentMd5 = false, maxSinglePut, true
	_, err := s.core.Client.PutObject(ctx, s.bucket, s.name(key), bytes.NewReader(body), int64(len(body)), options)
	return explainPut("put "+string(key), err)
}
