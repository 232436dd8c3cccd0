package s3

import (
	"context"

	"github.com/minio/minio-go/v7"

	"github.com/followpress/followpress/site"
)

// digestMetadata is the metadata that holds the MD5 of a body where the ETag does not. It
// goes out with the object as X-Amz-Meta-Followpress-Md5.
const digestMetadata = "Followpress-Md5"

// Digest returns the MD5 of an object's body even if the ETag is not one, as under SSE-KMS, or
// ErrNotFound. It requests the headers of the object, which contain the MD5 if Put knew of such
// ETags at the time. Otherwise it reads the object: an ETag may look like an MD5 and be none.
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
