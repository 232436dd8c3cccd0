package server_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/refreshed"
)

// wholeSnapshot has an account with three lists, of which 2 is the primary one, and another account,
// with list 1, which was called other.eth earlier. list 5 is that of an account without a primary list.
func wholeSnapshot(t testing.TB, asOf, ens, badge string) afero.Fs {
	t.Helper()
	snapshot := afero.NewMemMapFs()
	for name, text := range map[string]string{
		"meta.json":     `{"format":1,"as_of":"` + asOf + `"}`,
		"events.ndjson": anEvent + "\n" + strings.Replace(anEvent, `"id":1`, `"id":2`, 1),
		"badges.ndjson": badge,
		"lists.ndjson": fmt.Sprintf(`{"token_id":"1","owner":%q}
{"token_id":"2","owner":%q}
{"token_id":"3","owner":%[2]q}
{"token_id":"4","owner":%[2]q}
{"token_id":"5","owner":%[3]q}
{"token_id":"6","owner":%[3]q}`, numbered(1), numbered(2), numbered(3)),
		"records.ndjson": fmt.Sprintf(`{"token_id":"1","version":1,"record_type":"address","data":%q}`, numbered(2)),
		"accounts.ndjson": fmt.Sprintf(`{"address":%q,"primary_list":"1","ens":{"name":"other.eth"}}
{"address":%q,"primary_list":"2","ens":%s}
{"address":%q,"ens":{"name":"listless.eth"}}`, numbered(1), numbered(2), ens, numbered(3)),
	} {
		if err := afero.WriteFile(snapshot, name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return snapshot
}

func generatedEFP(t testing.TB, snapshot afero.Fs, refreshed generator.Refreshed) (afero.Fs, *summary.Report) {
	t.Helper()
	files, report, err := generator.ToMemory(t.Context(), snapshot, generator.Options{Config: site.Config{API: site.APIEFP}, Refreshed: refreshed})
	if err != nil {
		t.Fatal(err)
	}
	return files, report
}

const (
	anEvent = `{"id":1,"fancy_id":"e","name":"e","event_url":"","image_url":"","country":"","city":"","description":"","year":2026,"start_date":"","end_date":"","expiry_date":""}`

	dayOne      = "2026-01-01T00:00:00Z"
	staleENS    = `{"name":"bob.eth","fresh":1000}`
	freshENS    = `{"name":"bob.eth","avatar":"https://img.example/<new>.png","records":{"b":1.50,"a":"x"},"fresh":1790000000000}`
	renamedENS  = `{"name":"other.eth","avatar":"https://img.example/new.png","fresh":1790000000000}`
	freshBadges = `{"event_id":"1","token_id":"99","owner":"%s"}`
)

// shows returns the objects that show the profile or the badges of the second account.
func shows(name string, kinds ...string) (keys []site.Key) {
	for _, kind := range kinds {
		for _, of := range []string{"lists/2", "lists/3", "lists/4", "users/" + numbered(2), "users/" + name} {
			keys = append(keys, site.Key("api/v1/"+of+"/"+kind))
		}
	}
	return keys
}

// scans is a badge upstream: everybody holds a token of the first event.
func scans(w http.ResponseWriter, r *http.Request) {
	account, event, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/scan/"), "/")
	if event != "1" {
		http.NotFound(w, r)
		return
	}
	fmt.Fprintf(w, `{"event":%s,"tokenId":"99","owner":%q}`, anEvent, account)
}

// Whatever is asked for, a refresh replaces every object that shows the profile or the badges of the
// account by what the generator would make of them, and no others; the publisher takes none of them
// for damaged, and the next run of the generator merges the data.
func TestARefreshReplacesAllCopies(t *testing.T) {
	t.Parallel()
	before, _ := generatedEFP(t, wholeSnapshot(t, dayOne, staleENS, ""), nil)
	after, _ := generatedEFP(t, wholeSnapshot(t, dayOne, freshENS, fmt.Sprintf(freshBadges, numbered(2))), nil)
	for _, of := range []string{"lists/2", "lists/4", "users/" + strings.ToUpper(numbered(2)), "users/bob.eth", "users/BOB.eth"} {
		t.Run(of, func(t *testing.T) {
			onBuckets(t, func(t *testing.T, open func() bucket) {
				published(t, before, open())
				u := newUpstream(t, says(freshENS), scans)
				base := listen(t, newHandler(t, open(), server.Options{Refresh: u.options()}))
				for _, kind := range []string{"details", "badges"} {
					r, body := request(t, http.MethodGet, base+"/api/v1/"+of+"/"+kind+"?cache=fresh")
					isFresh(t, r, body)
					if want := readObject(t, after, site.Key("api/v1/lists/2/"+kind)); body != want {
						t.Errorf("%s: got  %s\nwant %s", kind, body, want)
					}
				}
				stored, changed := content(t, open(), "api/"), shows("bob.eth", "details", "badges", "account")
				for key, body := range stored {
					want := before
					if slices.Contains(changed, key) {
						want = after
					}
					if wanted := readObject(t, want, key); body != wanted {
						t.Errorf("%s: got  %s\nwant %s", key, body, wanted)
					}
				}
				for _, key := range changed {
					if _, body := request(t, http.MethodGet, base+"/"+string(key)); body != stored[key] {
						t.Errorf("%s: got %s, want the stored object", key, body)
					}
				}
				v, err := publisher.Verify(t.Context(), open(), publisher.Options{})
				if err != nil || !v.Good() || v.Refreshed.Count != len(changed) {
					t.Errorf("verify: got %v, %v, want a good bucket with %d refreshed objects", v, err, len(changed))
				}
				if kept := content(t, open(), "_refresh/"); len(kept) != len(changed) || kept["_refresh/details/2"] == "" || kept["_refresh/badges/2"] == "" {
					t.Errorf("kept: got %v, want data of the primary list and notes about copies", kept)
				}
			})
		})
	}
}

// A profile may have another name than the site knows. The objects under the old name are refreshed
// again and again, those of the account that has the new name are not.
func TestARefreshWithAnotherName(t *testing.T) {
	t.Parallel()
	files, _ := generatedEFP(t, wholeSnapshot(t, dayOne, staleENS, ""), nil)
	folder := filepath.Join(t.TempDir(), "bucket")
	bucket := openLocal(folder)
	published(t, files, bucket)
	u := newUpstream(t, nil, nil)
	base := listen(t, newHandler(t, bucket, server.Options{Refresh: u.options()}))
	for i := range 3 {
		fresh := strings.Replace(renamedENS, "new.png", fmt.Sprintf("%d.png", i), 1)
		u.tell(says(fresh), scans)
		for _, kind := range []string{"details", "badges"} {
			r, body := request(t, http.MethodGet, base+"/api/v1/lists/2/"+kind+"?cache=fresh")
			isFresh(t, r, body)
		}
		all := content(t, bucket, "api/")
		for _, key := range shows("bob.eth", "details", "account") {
			if want := fmt.Sprintf(`{"name":"other.eth","avatar":"https://img.example/%d.png"`, i); !strings.Contains(all[key], want) {
				t.Errorf("%s: got %s, want %s", key, all[key], want)
			}
		}
		for _, key := range []site.Key{"api/v1/users/other.eth/details", "api/v1/users/other.eth/account", "api/v1/users/other.eth/badges", "api/v1/lists/1/details"} {
			if want := readObject(t, files, key); all[key] != want {
				t.Errorf("%s: got %s, want that of the account that has the name: %s", key, all[key], want)
			}
		}
	}
	kept, err := refreshed.Open(t.Context(), storage.Location{Folder: filepath.Join(folder, "_refresh")}, storage.S3Options{})
	if err != nil {
		t.Fatal(err)
	}
	next, report := generatedEFP(t, wholeSnapshot(t, dayOne, staleENS, ""), kept)
	if r := report.Refreshed; r.Objects != 2 || r.Profiles != 1 || r.Badges != 1 || r.Skipped != 0 {
		t.Errorf("merged: got %+v, want a profile and badges", r)
	}
	if got, want := readObject(t, next, "api/v1/users/other.eth/account"), readObject(t, files, "api/v1/users/other.eth/account"); got != want {
		t.Errorf("the next site: got %s, want that of the account that has the name: %s", got, want)
	}
	if details := readObject(t, next, "api/v1/lists/2/details"); !strings.Contains(details, "2.png") {
		t.Errorf("the next site: got %s, want the fresh profile", details)
	}
}

// However often refreshes rename an account, the objects under the name that the site knows are refreshed. They are also
// after the site was published again under another name, and the last refresh was reapplied.
func TestARefreshWithManyNames(t *testing.T) {
	t.Parallel()
	bucket := openLocal(filepath.Join(t.TempDir(), "bucket"))
	u := newUpstream(t, nil, nil)
	rename := func(base string, i int) {
		t.Helper()
		u.tell(says(fmt.Sprintf(`{"name":"new%d.eth","avatar":"https://img.example/%[1]d.png","fresh":%d}`, i, 5000+i)), scans)
		r, body := request(t, http.MethodGet, base+"/api/v1/lists/2/details?cache=fresh")
		isFresh(t, r, body)
	}
	shown := func(name string, i int) {
		t.Helper()
		all := content(t, bucket, "api/")
		for _, key := range shows(name, "details", "account") {
			if want := fmt.Sprintf(`"name":"new%d.eth"`, i); !strings.Contains(all[key], want) {
				t.Errorf("rename %d: %s: got %s, want %s", i, key, all[key], want)
			}
		}
	}
	first, _ := generatedEFP(t, wholeSnapshot(t, dayOne, staleENS, ""), nil)
	published(t, first, bucket)
	base := listen(t, newHandler(t, bucket, server.Options{Refresh: u.options()}))
	for i := range 6 {
		rename(base, i)
		shown("bob.eth", i)
	}
	// The next site has another name, and none of the refreshes.
	second, _ := generatedEFP(t, wholeSnapshot(t, "2026-01-02T00:00:00Z", strings.Replace(staleENS, "bob.eth", "robert.eth", 1), ""), nil)
	published(t, second, bucket)
	handler := newHandler(t, bucket, server.Options{Refresh: u.options(), Poll: 10 * time.Millisecond})
	stop := watch(t, handler)
	for _, key := range shows("robert.eth", "details") {
		eventually(t, string(key)+" is fresh", func() bool {
			body, err := bucket.Get(t.Context(), key)
			return err == nil && strings.Contains(string(body), "new5.eth")
		})
	}
	stop()
	base = listen(t, newHandler(t, bucket, server.Options{Refresh: u.options()}))
	for i := 6; i < 12; i++ {
		rename(base, i)
		shown("robert.eth", i)
	}
}

// A profile dated in the future counts as current: otherwise no later answer would be newer.
func TestARefreshOfTheFuture(t *testing.T) {
	t.Parallel()
	bucket := openLocal(filepath.Join(t.TempDir(), "bucket"))
	files, _ := generatedEFP(t, wholeSnapshot(t, dayOne, staleENS, ""), nil)
	published(t, files, bucket)
	u := newUpstream(t, nil, nil)
	base := listen(t, newHandler(t, bucket, server.Options{Refresh: u.options()}))
	for _, ens := range []string{`{"name":"bob.eth","avatar":"https://img.example/future.png","fresh":4000000000000}`, `{"name":"bob.eth","avatar":"https://img.example/later.png"}`} {
		u.tell(says(ens), scans)
		r, body := request(t, http.MethodGet, base+"/api/v1/lists/2/details?cache=fresh")
		isFresh(t, r, body)
	}
	all := content(t, bucket, "")
	for _, key := range append(shows("bob.eth", "details", "account"), "_refresh/details/2") {
		if !strings.Contains(all[key], "later.png") {
			t.Errorf("%s: got %s, want the later profile", key, all[key])
		}
	}
}

// Badges that were fetched before those of the site are not reapplied, nor those of an account that had the list before.
func TestReapplyingLeavesOtherBadges(t *testing.T) {
	t.Parallel()
	badges := fmt.Sprintf(`{"event_id":"2","token_id":"5","owner":%q}`+"\n"+`{"event_id":"2","token_id":"6","owner":%q}`, numbered(2), numbered(3))
	for name, change := range map[string]struct{ day, from, to string }{
		"the site is newer":            {"2099-01-01T00:00:00Z", "", ""},
		"another account has the list": {dayOne, fmt.Sprintf(`{"token_id":"2","owner":%q}`, numbered(2)), fmt.Sprintf(`{"token_id":"2","owner":%q}`, numbered(3))},
	} {
		t.Run(name, func(t *testing.T) {
			bucket := openLocal(filepath.Join(t.TempDir(), "bucket"))
			first, _ := generatedEFP(t, wholeSnapshot(t, dayOne, staleENS, ""), nil)
			published(t, first, bucket)
			u := newUpstream(t, says(freshENS), scans)
			base := listen(t, newHandler(t, bucket, server.Options{Refresh: u.options()}))
			r, body := request(t, http.MethodGet, base+"/api/v1/lists/2/badges?cache=fresh")
			isFresh(t, r, body)
			next := wholeSnapshot(t, change.day, staleENS, badges)
			text, err := afero.ReadFile(next, "lists.ndjson")
			if err == nil {
				err = afero.WriteFile(next, "lists.ndjson", []byte(strings.Replace(string(text), change.from, change.to, 1)), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			second, _ := generatedEFP(t, next, nil)
			published(t, second, bucket)
			newHandler(t, bucket, server.Options{Refresh: u.options()}).Reapply(t.Context())
			all := content(t, bucket, "api/")
			for _, key := range shows("bob.eth", "badges") {
				if want := readObject(t, second, key); all[key] != want {
					t.Errorf("%s: got %s, want that of the site: %s", key, all[key], want)
				}
			}
		})
	}
}

// A user without a primary list is not refreshed; the lists of the user are.
func TestARefreshWithoutAPrimaryList(t *testing.T) {
	t.Parallel()
	files, _ := generatedEFP(t, wholeSnapshot(t, dayOne, staleENS, ""), nil)
	bucket := openLocal(filepath.Join(t.TempDir(), "bucket"))
	published(t, files, bucket)
	u := newUpstream(t, says(freshENS), scans)
	base := listen(t, newHandler(t, bucket, server.Options{Refresh: u.options()}))
	for _, kind := range []string{"details", "badges"} {
		r, body := request(t, http.MethodGet, base+"/api/v1/users/listless.eth/"+kind+"?cache=fresh")
		if want := readObject(t, files, site.Key("api/v1/users/listless.eth/"+kind)); body != want || r.Header.Get("Cache-Control") != "no-store" || r.Header.Get("X-Refresh") != "unavailable" {
			t.Errorf("%s: got %v %s, want the stored object", kind, r.Header, body)
		}
	}
	if asked := u.requests(); len(asked) > 0 {
		t.Errorf("requests to the upstream: got %q, want none", asked)
	}
	r, body := request(t, http.MethodGet, base+"/api/v1/lists/6/details?cache=fresh")
	isFresh(t, r, body)
	all := content(t, bucket, "")
	for _, key := range []site.Key{"api/v1/lists/5/details", "api/v1/users/" + site.Key(numbered(3)) + "/account", "api/v1/users/listless.eth/details"} {
		if !strings.Contains(all[key], "<new>.png") {
			t.Errorf("%s: got %s, want the fresh profile", key, all[key])
		}
	}
	if all["_refresh/details/5"] == "" || all["_refresh/details/6"] != "" {
		t.Errorf("kept: got %v, want data of the first list only", content(t, bucket, "_refresh/"))
	}
}

// A publish between overwrites copies too: fallbacks reapply the refresh to all of them.
func TestRefreshedCopiesOutliveAPublish(t *testing.T) {
	t.Parallel()
	bucket := openLocal(filepath.Join(t.TempDir(), "bucket"))
	before, _ := generatedEFP(t, wholeSnapshot(t, dayOne, staleENS, ""), nil)
	published(t, before, bucket)
	u := newUpstream(t, says(freshENS), scans)
	base := listen(t, newHandler(t, bucket, server.Options{Refresh: u.options()}))
	for _, kind := range []string{"details", "badges"} {
		r, body := request(t, http.MethodGet, base+"/api/v1/users/bob.eth/"+kind+"?cache=fresh")
		isFresh(t, r, body)
	}
	// The next site knows a newer profile than the first, but not the refreshed one, another event,
	// and one list less.
	next := wholeSnapshot(t, "2026-01-02T00:00:00Z", strings.Replace(staleENS, "1000", "2000", 1), "")
	for name, change := range map[string]func(string) string{
		"events.ndjson": func(text string) string {
			return text + "\n" + strings.Replace(anEvent, `"id":1`, `"id":3`, 1)
		},
		"lists.ndjson": func(text string) string {
			return strings.Replace(text, fmt.Sprintf("{\"token_id\":\"4\",\"owner\":%q}\n", numbered(2)), "", 1)
		},
	} {
		text, err := afero.ReadFile(next, name)
		if err == nil {
			err = afero.WriteFile(next, name, []byte(change(string(text))), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	files, _ := generatedEFP(t, next, nil)
	published(t, files, bucket)
	changed := slices.DeleteFunc(shows("bob.eth", "details", "account", "badges"), func(key site.Key) bool { return strings.Contains(string(key), "lists/4") })
	if all := content(t, bucket, "api/"); strings.Contains(all[changed[0]], "<new>.png") {
		t.Fatalf("after the publish: got %s, want it overwritten", all[changed[0]])
	}

	handler := newHandler(t, bucket, server.Options{Refresh: u.options(), Poll: 10 * time.Millisecond})
	stop := watch(t, handler)
	for _, key := range changed {
		want := "<new>.png"
		if strings.HasSuffix(string(key), "badges") {
			want = `"tokenId":"99"`
		}
		eventually(t, string(key)+" is fresh", func() bool {
			body, err := bucket.Get(t.Context(), key)
			return err == nil && strings.Contains(string(body), want)
		})
	}
	stop()
	v, err := publisher.Verify(t.Context(), bucket, publisher.Options{})
	if err != nil || !v.Good() || v.Refreshed.Count != len(changed) {
		t.Errorf("verify: got %v, %v, want a good bucket with %d refreshed objects", v, err, len(changed))
	}
}
