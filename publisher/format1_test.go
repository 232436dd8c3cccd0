package publisher

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
)

// ofFormat1 is a site that a version before format 2 has made, and one of this format that differs in three objects. The
// fixture is what its generate made of fixtures/format1/snapshot, with --explorer=false --leaderboard-max 10.
func ofFormat1(t *testing.T) (old, next memorySite, changed, gone, added site.Key) {
	t.Helper()
	old = memsite.ReadTar(t, "../fixtures/format1/site.tar.gz")
	root, err := site.ParseReplaced([]byte(old[site.RootKey]))
	if err != nil || root.Format != 1 {
		t.Fatalf("the fixture: got format %d, %v, want 1", root.Format, err)
	}
	c := root.Config
	changed, gone, added = c.ListKey("1", site.Records), c.ListKey("2", site.Badges), c.ListKey("99", site.Badges)
	objects := maps.Clone(old)
	maps.DeleteFunc(objects, func(key site.Key, _ string) bool {
		return key == site.RootKey || strings.HasPrefix(string(key), "_manifest/")
	})
	objects[changed] += " "
	objects[added] = "new"
	delete(objects, gone)
	root.Format, root.Manifest1, root.HeaderRules = site.Format, nil, c.HeaderRules()
	return old, memsite.New(t, root, objects), changed, gone, added
}

// TestPublishReplacesFormat1: a bucket of format 1 becomes one of this format, and what is the same is not put again, wherever runs
// are cut off.
func TestPublishReplacesFormat1(t *testing.T) {
	old, next, changed, gone, added := ofFormat1(t)
	isOwn := func(key site.Key) bool {
		return strings.HasPrefix(string(key), "_manifest/") || slices.Contains([]site.Key{site.RootKey, site.LockKey, site.MarkKey}, key)
	}
	for left := -1; ; left += 3 {
		folder := t.TempDir()
		for key, body := range old {
			put(t, folder, key, body)
		}
		bucket := openLocal(folder)
		if left == -1 {
			if _, err := Verify(t.Context(), bucket, Options{}); !errors.Is(err, site.ErrFormat) || !strings.Contains(err.Error(), "publish") {
				t.Errorf("verify: got %v, want ErrFormat and what to do", err)
			}
		}
		var wrote []site.Key
		run := &mortal{Bucket: bucket, left: left}
		report, err := Publish(context.Background(), next, run, Options{BreakLock: true, drain: dead, Concurrency: 4})
		wrote = append(wrote, run.put...)
		died := errors.Is(err, errDead)
		if err != nil && !died {
			t.Fatal(err)
		}
		if !died && (report.Done.Put != 2 || report.Resumed) {
			t.Errorf("got %+v, resumed %v, want two objects put by comparing manifests", report.Done, report.Resumed)
		}
		if died {
			again := &mortal{Bucket: bucket, left: -1}
			publish(t, next, again, Options{BreakLock: true, drain: dead})
			wrote = append(wrote, again.put...)
		}
		for _, key := range wrote {
			if !isOwn(key) && key != changed && key != added {
				t.Errorf("cut off after %d requests: %s is put again", left, key)
			}
		}
		equalSites(t, inBucket(t, folder), next)
		if _, ok := inBucket(t, folder)[gone]; ok {
			t.Errorf("cut off after %d requests: %s is still there", left, gone)
		}
		if v, err := Verify(t.Context(), bucket, Options{}); err != nil || !v.Good() {
			t.Errorf("verify: got %+v, %v, want it good", v, err)
		}
		if left >= 0 && !died {
			return
		}
	}
}

// TestDamagedBucketOfFormat1 is taken over by a listing.
func TestDamagedBucketOfFormat1(t *testing.T) {
	old, next, _, _, _ := ofFormat1(t)
	folder := t.TempDir()
	for key, body := range old {
		if key != site.ManifestKey("3") {
			put(t, folder, key, body)
		}
	}
	if report := publish(t, next, openLocal(folder), Options{}); !report.Resumed || report.Done.Put != 2 {
		t.Errorf("got %+v, resumed %v, want two objects put, by a listing", report.Done, report.Resumed)
	}
	equalSites(t, inBucket(t, folder), next)
}
