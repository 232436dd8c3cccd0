// Package location parses the texts with which users name buckets and folders.
package location

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/followpress/followpress/site"
)

// A Location is a bucket with a prefix, or a folder.
type Location struct {
	Folder string // from file://; "" for s3://
	Bucket string // from s3://
	Prefix string // prefix of the keys, "" or ending in a slash
}

// ParsePlace is like Parse and also accepts the path of a folder.
func ParsePlace(text string) (Location, error) {
	if !strings.Contains(text, "://") {
		return Location{Folder: text}, nil
	}
	return Parse(text)
}

// Parse parses s3://bucket, s3://bucket/prefix or file:///folder.
func Parse(text string) (Location, error) {
	u, err := url.Parse(text)
	if err != nil {
		return Location{}, errors.New("the location is not a URL; use s3://BUCKET, s3://BUCKET/PREFIX or file:///FOLDER")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return Location{}, errors.New("the location has a user, a query or a fragment; put credentials into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	switch u.Scheme {
	case "file":
		if u.Host != "" || !filepath.IsAbs(u.Path) {
			return Location{}, fmt.Errorf("%s: not an absolute path; use file:///FOLDER", text)
		}
		return Location{Folder: filepath.Clean(u.Path)}, nil
	case "s3":
		prefix := strings.Trim(u.Path, "/")
		if u.Host == "" || prefix != "" && !site.Key(prefix).Valid() {
			return Location{}, fmt.Errorf("%s: not a bucket; use s3://BUCKET or s3://BUCKET/PREFIX", text)
		}
		if s3utils.CheckValidBucketNameStrict(u.Host) != nil {
			return Location{}, fmt.Errorf("%s: %s is not a bucket name; use s3://BUCKET, where BUCKET has 3 to 63 lower-case letters, digits, hyphens and dots", text, site.Quoted(u.Host))
		}
		if prefix != "" {
			prefix += "/"
		}
		return Location{Bucket: u.Host, Prefix: prefix}, nil
	}
	const forms = "use s3://BUCKET, s3://BUCKET/PREFIX or file:///FOLDER"
	if info, err := os.Stat(text); err == nil && !info.IsDir() {
		return Location{}, fmt.Errorf("%s is a file; %s", text, forms)
	} else if path, absErr := filepath.Abs(text); err == nil && absErr == nil {
		return Location{}, fmt.Errorf("%s is a folder; name it as file://%s, or %s", text, path, forms)
	}
	return Location{}, fmt.Errorf("%s: %s", text, forms)
}
