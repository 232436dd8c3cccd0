package storage

import (
	"context"

	"github.com/minio/minio-go/v7"

	"github.com/followpress/followpress/site"
)

// digestName is the metadata that holds the MD5 of a body where the ETag does not. It
// goes out with the object as X-Amz-Meta-Followpress-Md5.
const digestName = "Followpress-Md5"

// Digest is the MD5 of an object's body, also where the ETag is something else, as under
// SSE-KMS; ErrNotFound if there is none. It asks for the headers of the object: what Put
// stored while it knew of such ETags has its MD5 in there. Others it reads.
func (s *S3) Digest(ctx context.Context, key site.Key) (site.MD5, error) {
	info, err := s.core.StatObject(ctx, s.bucket, s.name(key), minio.StatObjectOptions{})
	if err != nil {
		return site.MD5{}, explain("head", key, err)
	}
	var digest site.MD5
	if digest.UnmarshalText([]byte(info.UserMetadata[digestName])) == nil {
		return digest, nil
	}
	// Amazon's documentation: the ETag of a plain or SSE-S3 (AES256) object that was put
	// with one request is the MD5 of its body, that of others is not.
	const encryption = "X-Amz-Server-Side-Encryption"
	method, own := info.Metadata.Get(encryption), info.Metadata.Get(encryption+"-Customer-Algorithm")
	if (method == "" || method == "AES256") && own == "" && digest.UnmarshalText([]byte(info.ETag)) == nil {
		return digest, nil
	}
	body, err := s.Get(ctx, key)
	return site.Sum(body), err
}
