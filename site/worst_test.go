package site_test

import (
	"strings"
	"testing"

	"github.com/followpress/followpress/fixtures/worst"
	"github.com/followpress/followpress/site"
)

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
