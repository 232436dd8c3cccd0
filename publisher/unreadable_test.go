package publisher

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A closedBucket is a local bucket with an unreadable file.
type closedBucket struct {
	Bucket
	key site.Key
}

func (b closedBucket) List(ctx context.Context, prefix, after site.Key, found func(storage.Info) error) error {
	err := b.Bucket.List(ctx, prefix, after, found)
	if err == nil && strings.HasPrefix(string(b.key), string(prefix)) {
		err = fmt.Errorf("list: %w", &storage.UnreadableError{Keys: []site.Key{"aquota.user", b.key}, Errs: []error{fs.ErrPermission, fs.ErrPermission}})
	}
	return err
}

// Unreadable foreign folders, such as the lost+found of a disk, do not stop a run; an unreadable
// folder that may hold objects of the site is an error.
func TestUnreadableFolders(t *testing.T) {
	from := siteOf(t, objectsOf(5, ""))
	for key, ours := range map[site.Key]bool{
		"lost+found/": false, "other": false, "api/v2/": false, "api/v10/": false, "_sites/": false, "apis": false, "_/": false,
		"api/": true, "api": true, "api/v1/": true, "api/v1/lists/3/": true, "api/v1/lists/3/details": true, "_manifest/": true, "_site/": true, "_site": true,
		"_refresh/users/": true, "_search/lists/": true,
	} {
		t.Run(string(key), func(t *testing.T) {
			check := func(what string, err error) {
				t.Helper()
				if ours && (!errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "read "+string(key)+", which may be part of the site")) {
					t.Errorf("%s: got %v, want an error that names it", what, err)
				} else if !ours && err != nil {
					t.Errorf("%s: got %v, want none", what, err)
				}
			}
			folder := t.TempDir()
			bucket := closedBucket{openLocal(folder), key}
			o := Options{BreakLock: true, drain: dead}
			_, err := Publish(t.Context(), from, bucket, o)
			check("first publish", err)
			publish(t, from, bucket.Bucket, o)

			v, err := Verify(t.Context(), bucket, o)
			check("verify", err)
			if err == nil && (!v.Good() || v.Others.Count != 2 || !strings.Contains(v.String(), "2 unreadable files and folders")) {
				t.Errorf("got %+v, want it good, with two that cannot be read", v)
			}
			_, err = Repair(t.Context(), from, bucket, o)
			check("repair", err)

			next := siteOf(t, objectsOf(6, "x"))
			if _, err := Publish(t.Context(), next, &mortal{Bucket: bucket.Bucket, left: 10}, o); !errors.Is(err, errDead) {
				t.Fatalf("got %v, want a run that is cut off", err)
			}
			report, err := Publish(t.Context(), next, bucket, o)
			check("resumed", err)
			if err == nil && !report.Resumed {
				t.Error("got no listing, want one")
			}
		})
	}
}
