package site_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/fixtures/worst"
	"github.com/followpress/followpress/site"
)

func TestManifestRoundTrip(t *testing.T) {
	random := newRandom()
	for range 200 {
		m := site.Manifest{Shard: pick(random, site.HashPrefixes(1)), Objects: []site.Entry{}}
		keys := map[string]bool{}
		for range random.IntN(100) {
			key := "k" + strings.NewReplacer("/", "-", "\x00", "-").Replace(randomText(random, 6))
			keys[key] = site.ManifestShard(site.Key(key), 1) == m.Shard
		}
		maps.DeleteFunc(keys, func(_ string, in bool) bool { return !in })
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			m.Objects = append(m.Objects, site.Entry{Key: site.Key(key), Size: random.Int64(), MD5: site.Sum([]byte(key)), SHA256: site.Sum256([]byte(key))})
		}
		body := m.Append([]byte("x"))[1:]
		equal(t, "manifest", string(body), encode(t, m))
		again, err := site.ParseManifest(m.Shard, body)
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Fatalf("ParseManifest(%s): got %+v, %v, want the encoded manifest", body, again, err)
		}
	}
	// No object is an empty list, never null.
	equal(t, "empty manifest", string(site.Manifest{Shard: "0"}.Append(nil)), `{"shard":"0","objects":[]}`)
}

func TestParseManifestRefuses(t *testing.T) {
	const digest = "900150983cd24fb0d6963f7d28e17f72"
	const sha = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	object := func(key, size, md5 string) string {
		return `{"key":"` + key + `","size":` + size + `,"md5":"` + md5 + `","sha256":"` + sha + `"}`
	}
	// inShard is the first key of a form, such as "x%d", that belongs to the shard.
	inShard := func(form string) string {
		for i := 0; ; i++ {
			if key := fmt.Sprintf(form, i); site.ManifestShard(site.Key(key), 1) == "a" {
				return key
			}
		}
	}
	b := inShard("b%d")
	good := object(b, "1", digest)
	shard := func(objects ...string) string { return `{"shard":"a","objects":[` + strings.Join(objects, ",") + `]}` }

	if _, err := site.ParseManifest("a", []byte(shard(good, object(inShard("c%d"), "0", digest)))); err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{
		"wrong shard":    strings.Replace(shard(good), `"a"`, `"b"`, 1),
		"no shard":       `{"objects":[` + good + `]}`,
		"wrong order":    shard(good, object(inShard("a%d"), "1", digest)),
		"duplicate key":  shard(good, good),
		"empty key":      shard(object("", "1", digest)),
		"absolute key":   shard(object(inShard("/b%d"), "1", digest)),
		"key with ..":    shard(object(inShard("b/../../c%d"), "1", digest)),
		"key with .":     shard(object(inShard("b/./c%d"), "1", digest)),
		"key with NUL":   shard(object(strings.Replace(inShard("b\x00%d"), "\x00", `\u0000`, 1), "1", digest)),
		"another's key":  `{"shard":"b","objects":[` + good + `]}`,
		"no objects":     `{"shard":"a"}`,
		"null objects":   `{"shard":"a","objects":null}`,
		"no md5":         shard(`{"key":"` + b + `","size":1,"sha256":"` + sha + `"}`),
		"no sha256":      shard(`{"key":"` + b + `","size":1,"md5":"` + digest + `"}`),
		"zero sha256":    shard(strings.Replace(good, sha, strings.Repeat("0", 64), 1)),
		"short sha256":   shard(strings.Replace(good, sha, sha[1:], 1)),
		"bad sha256":     shard(strings.Replace(good, sha, "x"+sha[1:], 1)),
		"no key":         shard(`{"size":1,"md5":"` + digest + `","sha256":"` + sha + `"}`),
		"negative size":  shard(object(b, "-1", digest)),
		"broken size":    shard(object(b, "1.5", digest)),
		"size as text":   shard(object(b, `"1"`, digest)),
		"huge size":      shard(object(b, "9223372036854775808", digest)),
		"short md5":      shard(object(b, "1", digest[1:])),
		"long md5":       shard(object(b, "1", digest+"0")),
		"empty md5":      shard(object(b, "1", "")),
		"md5 not digits": shard(object(b, "1", "g"+digest[1:])),
		"ETag as md5":    shard(object(b, "1", `\"`+digest+`\"`)),
		"md5 as number":  shard(`{"key":"` + b + `","size":1,"md5":5,"sha256":"` + sha + `"}`),
		"no JSON":        "<html>",
		"another shape":  `["a"]`,
		"two objects":    shard(good) + shard(good),
		"nothing":        "",
		"null":           "null",
	} {
		m, err := site.ParseManifest("a", []byte(body))
		if err == nil || !strings.Contains(err.Error(), "_manifest/a") {
			t.Errorf("%s: got the error %v, want one that names the shard", name, err)
		}
		if m.Shard != "" || m.Objects != nil {
			t.Errorf("%s: got %+v with the error, want nothing", name, m)
		}
	}
	whole := shard(good)
	for n := range len(whole) {
		if _, err := site.ParseManifest("a", []byte(whole[:n])); err == nil {
			t.Errorf("ParseManifest(%s): got no error, want one", whole[:n])
		}
	}
}

// Diff equals a comparison of maps, and applying it turns live into next.
func TestDiffAgainstMaps(t *testing.T) {
	random := newRandom()
	for range 500 {
		live, next := randomObjects(random), randomObjects(random)
		changes := site.Diff(live, next)
		equalSlices(t, "changes", changes, mapDiff(live, next))

		now := byKey(live)
		for _, c := range changes {
			if c.Reason == site.Gone {
				delete(now, c.Key)
			} else {
				now[c.Key] = c.Entry
			}
		}
		if !maps.Equal(now, byKey(next)) {
			t.Fatalf("%v applied to\n%v: got\n%v, want\n%v", changes, live, now, next)
		}
	}
}

func mapDiff(live, next []site.Entry) []site.Change {
	var changes []site.Change
	was, is := byKey(live), byKey(next)
	for key, e := range was {
		if _, ok := is[key]; !ok {
			changes = append(changes, site.Change{Entry: e, Reason: site.Gone})
		}
	}
	for key, e := range is {
		if old, ok := was[key]; !ok {
			changes = append(changes, site.Change{Entry: e, Reason: site.Added})
		} else if old != e {
			changes = append(changes, site.Change{Entry: e, Reason: site.Altered, Was: old})
		}
	}
	slices.SortFunc(changes, func(a, b site.Change) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return changes
}

func byKey(objects []site.Entry) map[site.Key]site.Entry {
	m := map[site.Key]site.Entry{}
	for _, e := range objects {
		m[e.Key] = e
	}
	return m
}

// TestWorstDocuments: a manifest shard and a root take only a multiple of their size, and a root above the limit
// takes none.
func TestWorstDocuments(t *testing.T) {
	texts := map[string]worst.Text{
		"entries":    {Begin: `{"shard":"0","objects":[{}`, Again: `,{}`},
		"no entries": {Begin: `{"shard":"0","objects":[null`, Again: `,null`},
		"shards":     {Begin: `{"manifest":{"0":null`, Again: `,"0":null`},
	}
	for name, text := range texts {
		all := text.Bytes(worst.Size)
		// As a whole, it is valid JSON.
		whole := append(text.Bytes(len(text.Begin)+len(text.Again)*(site.MaxRootBytes/len(text.Again)-1)), "]}"...)
		worst.Check(t, "manifest: "+name, 1<<20, func() {
			if _, err := site.ParseManifest("0", all); err == nil {
				t.Errorf("%s: got no error", name)
			}
			if _, err := site.ParseManifest("0", whole); err == nil {
				t.Errorf("%s: got no error", name)
			}
		})
		worst.Check(t, "root: "+name, 1<<20, func() {
			if _, err := site.ParseRoot(all); err == nil {
				t.Errorf("%s: got no error", name)
			}
		})
	}
	chains := worst.Text{Begin: `{"format":2,"inputs":{"chains":[{}`, Again: `,{}`}
	many := append(chains.Bytes(site.MaxRootBytes-3), "]}}"...)
	worst.Check(t, "root: chains", 24<<20, func() {
		if _, err := site.ParseRoot(many); err == nil || !strings.Contains(err.Error(), "bytes of inputs") {
			t.Errorf("chains: got the error %v, want one about the inputs", err)
		}
	})
	for _, name := range worst.Names() {
		texts[name] = worst.JSON[name]
	}
	for name, text := range texts {
		body := text.Bytes(site.MaxRootBytes)
		worst.Check(t, name, 64<<20, func() {
			if _, err := site.ParseRoot(body); err == nil {
				t.Errorf("root, %s: got no error", name)
			}
			if _, err := site.ParseManifest("0", body); err == nil {
				t.Errorf("manifest, %s: got no error", name)
			}
		})
	}
}

// TestManifestOfCommas: keys may have commas and quotes.
func TestManifestOfCommas(t *testing.T) {
	for _, key := range []site.Key{"a,,,,,,,,,,,,,,,,,,,,,,,,,", `a",",",",",",",",",","\`} {
		if !key.Valid() {
			continue
		}
		m := site.Manifest{Shard: site.ManifestShard(key, 1), Objects: []site.Entry{site.NewEntry(key, nil)}}
		if got, err := site.ParseManifest(m.Shard, m.Append(nil)); err != nil || len(got.Objects) != 1 {
			t.Errorf("%s: got %d entries and the error %v", key, len(got.Objects), err)
		}
	}
}
