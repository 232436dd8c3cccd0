package s3

import (
	"context"

	"github.com/minio/minio-go/v7"

	"github.com/followpress/followpress/site"
)

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
