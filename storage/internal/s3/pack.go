package s3

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage/internal/object"
)

// PutMany stores objects with one request, on servers that unpack tar files (MinIO's "snowball"). Unpacks detects
// them; other servers store the tar file itself as site.PackKey. Errors are those of Put.
//
// The archive equals that of minio-go's PutObjectsSnowball; a test compares them. That function gives the archive a
// random name, so that other servers would keep it unnoticed, and does not let the server check a digest.
func (s *Bucket) PutMany(ctx context.Context, objects []object.Object) error {
	archive, err := s.pack(objects)
	if err != nil {
		return err
	}
	options := putOptions(object.Object{ContentType: "application/x-tar"})
	options.UserMetadata = map[string]string{"X-Amz-Meta-Snowball-Auto-Extract": "true"}
	_, err = s.putBody(ctx, "put an archive of "+string(objects[0].Key), site.PackKey, archive, site.Sum(archive), options)
	return err
}

// pack builds the archive. It checks each object's digest, because the server checks only the digest of the archive.
// The modification time is the server's, as without an archive.
func (s *Bucket) pack(objects []object.Object) ([]byte, error) {
	const overhead = 3 << 10 // bytes of headers and padding per object
	size := 0
	for _, o := range objects {
		size += len(o.Body) + overhead
	}
	archive := bytes.NewBuffer(make([]byte, 0, size))
	writer := tar.NewWriter(archive)
	now := s.Now().Truncate(time.Second)
	for _, o := range objects {
		if err := o.Check(); err != nil {
			return nil, err
		}
		records := map[string]string{"minio.metadata.Content-Type": o.ContentType, "minio.metadata.Cache-Control": o.CacheControl}
		for name, value := range o.Metadata {
			records["minio.metadata.X-Amz-Meta-"+name] = value
		}
		err := writer.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: s.name(o.Key), Size: o.Size, ModTime: now, Format: tar.FormatPAX, PAXRecords: records,
		})
		if err == nil {
			_, err = writer.Write(o.Body)
		}
		if err != nil {
			return nil, fmt.Errorf("pack %s: %w", o.Key, err)
		}
	}
	if err := writer.Flush(); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return archive.Bytes(), nil
}

// Unpacks stores objects with PutMany and reports whether the server unpacked them correctly. If not, it deletes the
// archive.
func (s *Bucket) Unpacks(ctx context.Context, objects []object.Object) (bool, error) {
	if s.amazon {
		return false, nil
	}
	err := s.PutMany(ctx, objects)
	if errors.Is(err, object.ErrUnsupported) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	// Look for the archive first, because the objects may have existed before.
	if _, _, err := s.Read(ctx, site.PackKey); err == nil {
		return false, s.Delete(ctx, []site.Key{site.PackKey})
	} else if !errors.Is(err, object.ErrNotFound) {
		return false, err
	}
	last := objects[len(objects)-1]
	_, info, err := s.read(ctx, last.Key)
	if errors.Is(err, object.ErrNotFound) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return bareETag(info.ETag) == last.MD5.String() && info.ContentType == last.ContentType && info.Metadata.Get("Cache-Control") == last.CacheControl, nil
}
