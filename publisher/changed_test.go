package publisher

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
)

func sorted(keys []site.Key) []site.Key {
	keys = slices.Clone(keys)
	slices.Sort(keys)
	return keys
}

// Reports, also of a dry run, name exactly the objects that were put and deleted, except the root.
func TestReportNamesWhatChanged(t *testing.T) {
	folder := t.TempDir()
	first, objects := objectsOf(5, ""), objectsOf(5, "")
	objects[listKey(3, site.Details)] = "another"
	objects[listKey(7, site.Records)] = "new"
	delete(objects, listKey(4, site.Badges))
	publish(t, siteOf(t, first), openLocal(folder), Options{NoLock: true})

	planned := publish(t, siteOf(t, objects), openLocal(folder), Options{NoLock: true, DryRun: true, MaxChanged: 100})
	bucket := count(openLocal(folder))
	done := publish(t, siteOf(t, objects), bucket, Options{NoLock: true, MaxChanged: 100})
	var written []site.Key
	for _, key := range bucket.log() {
		if key = site.Key(strings.TrimPrefix(string(key), "-")); key != site.RootKey && key != site.MarkKey {
			written = append(written, key)
		}
	}
	if done.Changed.Unknown || len(written) < 4 || !slices.Equal(sorted(done.Changed.Keys), sorted(written)) {
		t.Errorf("changed keys of the report: got %q, want %q", done.Changed.Keys, written)
	}
	if planned.Changed.Unknown || !slices.Equal(sorted(planned.Changed.Keys), sorted(written)) {
		t.Errorf("changed keys of the dry run: got %q, want %q", planned.Changed.Keys, written)
	}
	if again := publish(t, siteOf(t, objects), openLocal(folder), Options{NoLock: true, MaxChanged: 100}); len(again.Changed.Keys) > 0 || again.Changed.Unknown {
		t.Errorf("an unchanged site: got %+v, want no keys", again.Changed)
	}
}

// Changes are not named if there are too many, if the old state is unknown, or if headers changed.
func TestReportSaysThatChangesAreUnknown(t *testing.T) {
	folder := t.TempDir()
	if r := publish(t, siteOf(t, objectsOf(5, "")), openLocal(folder), Options{NoLock: true, MaxChanged: 1000}); !r.Changed.Unknown || r.Changed.Keys != nil {
		t.Errorf("the first publish: got %+v, want Unknown", r.Changed)
	}
	if r := publish(t, siteOf(t, objectsOf(5, "x")), openLocal(folder), Options{NoLock: true, MaxChanged: 16}); !r.Changed.Unknown || r.Changed.Keys != nil {
		t.Errorf("more than MaxChanged: got %+v, want Unknown", r.Changed)
	}
	older := siteOf(t, objectsOf(5, ""), func(r *site.Root) { r.HeaderRules[site.RouteBy(routes.UserSearch).Pattern] = site.MD5{1} })
	put(t, folder, site.RootKey, older[site.RootKey])
	if r := publish(t, siteOf(t, objectsOf(5, "")), openLocal(folder), Options{NoLock: true, MaxChanged: 1000}); !r.Changed.Unknown || r.Changed.Keys != nil {
		t.Errorf("other headers of answers: got %+v, want Unknown", r.Changed)
	}
	if err := os.WriteFile(filepath.Join(folder, string(site.MarkKey)), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := publish(t, siteOf(t, objectsOf(5, "")), openLocal(folder), Options{NoLock: true, MaxChanged: 1000}); !r.Changed.Unknown || r.Changed.Keys != nil {
		t.Errorf("after a run that was cut off: got %+v, want Unknown", r.Changed)
	}
}

// A publisher that dies after all changes may not have purged them: the next run reports unknown
// changes.
func TestReportAfterARunThatDiedLast(t *testing.T) {
	from := siteOf(t, objectsOf(5, ""))
	for left := 20; ; left++ {
		folder := t.TempDir()
		_, err := Publish(t.Context(), from, &mortal{Bucket: openLocal(folder), left: left}, Options{drain: dead})
		if err != nil {
			continue
		}
		if !isDoubted(t, folder) {
			t.Fatal("got a run that released its lock, want one that died before")
		}
		r := publish(t, from, openLocal(folder), Options{BreakLock: true, drain: dead, MaxChanged: 1000})
		if r.Outcome != Unchanged || !r.Resumed || !r.Changed.Unknown {
			t.Errorf("got %s, resumed %v, changed %+v, want a resumed run that does not know what changed", r.Outcome, r.Resumed, r.Changed)
		}
		return
	}
}

// The report has the configuration before and after, because answers may be computed from it.
func TestReportSaysWhichSettingsChanged(t *testing.T) {
	folder := t.TempDir()
	publish(t, siteOf(t, objectsOf(5, "")), openLocal(folder), Options{NoLock: true})
	next := siteOf(t, objectsOf(5, ""), func(r *site.Root) { r.Config.BadgesField = "b" })
	for _, dryRun := range []bool{true, false} {
		r := publish(t, next, openLocal(folder), Options{NoLock: true, MaxChanged: 1000, DryRun: dryRun})
		if r.Before.BadgesField != "badges" || r.Config.BadgesField != "b" {
			t.Errorf("dry run %v: got %+v before and %+v after, want those of the two sites", dryRun, r.Before, r.Config)
		}
	}
}

// A repair names what it repaired.
func TestRepairNamesWhatChanged(t *testing.T) {
	folder, from := t.TempDir(), siteOf(t, objectsOf(5, ""))
	publish(t, from, openLocal(folder), Options{NoLock: true})
	if err := os.Remove(filepath.Join(folder, string(listKey(2, site.Badges)))); err != nil {
		t.Fatal(err)
	}
	v, err := Repair(t.Context(), from, openLocal(folder), Options{NoLock: true, MaxChanged: 10})
	if err != nil {
		t.Fatal(err)
	}
	if c := v.Repaired.Changed; c.Unknown || !slices.Equal(c.Keys, []site.Key{listKey(2, site.Badges)}) {
		t.Errorf("changed by repair: got %+v, want only the key that was put back", c)
	}
}

// A report sums the results of several requests.
func TestReportAddsUp(t *testing.T) {
	r := NewReport()
	for range 2 {
		r.add(done{Put: 2, Bytes: 20})
		r.add(done{Deleted: 3})
	}
	if r.Done.Put != 4 || r.Done.Deleted != 6 {
		t.Errorf("got %+v, want 4 put and 6 deleted", r.Done)
	}
}
