package publisher

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
)

// withExplorer adds routes with one object each.
func withExplorer(r *site.Root) {
	r.Config.Explorer = true
	r.HeaderRules = r.Config.HeaderRules()
}

// The first publish refuses to replace foreign objects, names them and writes nothing, unless told
// to overwrite. It ignores foreign objects with other keys, and resumes a run that was cut off.
func TestTheFirstPublishReplacesNoObjectsOfOthers(t *testing.T) {
	objects := objectsOf(5, "")
	objects["index.html"], objects["_explore/index.html"] = "ours", "ours"
	from, foreign := siteOf(t, objects, withExplorer), map[site.Key]string{"index.html": "theirs", "robots.txt": "theirs"}
	for _, noLock := range []bool{false, true} {
		t.Run(fmt.Sprint("without a lock: ", noLock), func(t *testing.T) {
			folder := t.TempDir()
			for key, body := range foreign {
				put(t, folder, key, body)
			}
			o := Options{NoLock: noLock, drain: dead}
			for _, dryRun := range []bool{true, false} {
				o.DryRun = dryRun
				_, err := Publish(t.Context(), from, openLocal(folder), o)
				if !errors.Is(err, errForeign) || !strings.Contains(err.Error(), "index.html") || strings.Contains(err.Error(), "robots.txt") {
					t.Errorf("dry run %v: got %v, want an error that names index.html", dryRun, err)
				}
				equalSites(t, inBucket(t, folder), foreign)
			}
			o.DryRun, o.Overwrite = false, true
			publish(t, from, openLocal(folder), o)
			if body, err := os.ReadFile(filepath.Join(folder, "index.html")); err != nil || string(body) != "ours" {
				t.Errorf("told to overwrite: got %q, %v, want ours", body, err)
			}
			o.Overwrite = false
			if r := publish(t, from, openLocal(folder), o); r.Outcome != Unchanged {
				t.Errorf("the same again: got %s, want unchanged", r.Outcome)
			}
		})
	}
	for left := range 40 { // a first publish that dies, leaving objects in the bucket
		folder := t.TempDir()
		if _, err := Publish(context.Background(), from, &mortal{Bucket: openLocal(folder), left: left}, Options{drain: dead}); err == nil {
			break
		}
		next := siteOf(t, objectsOf(5, "x"), withExplorer)
		publish(t, next, openLocal(folder), Options{BreakLock: true, drain: dead})
		equalSites(t, inBucket(t, folder), next)
	}
}

// An update that adds an object with a fixed name does not replace a foreign one either.
func TestAnUpdateReplacesNoObjectsOfOthers(t *testing.T) {
	folder, objects := t.TempDir(), objectsOf(5, "")
	publish(t, siteOf(t, objects, withExplorer), openLocal(folder), Options{NoLock: true})
	put(t, folder, "_explore/index.html", "theirs")
	objects["_explore/index.html"] = "ours"
	if _, err := Publish(t.Context(), siteOf(t, objects, withExplorer), openLocal(folder), Options{NoLock: true}); !errors.Is(err, errForeign) || !strings.Contains(err.Error(), "_explore/index.html") {
		t.Errorf("got %v, want an error that names _explore/index.html", err)
	}
	put(t, folder, "_explore/index.html", "ours")
	publish(t, siteOf(t, objects, withExplorer), openLocal(folder), Options{NoLock: true})
}
