package site_test

import (
	"fmt"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/scan"
)

// An index finds the same entries as a scan of the shard, regardless of the texts and terms.
func TestShardIndex(t *testing.T) {
	random := newRandom()
	for range 300 {
		entries := randomEntriesOf(random, 1+random.IntN(8))
		h := scan.ShardHeader{List: fmt.Sprint(random.Uint64()), Total: len(entries), Shards: 1, ShardSize: 1000}
		shard := []byte(encodeShard(t, h, entries))
		terms := []string{"", "0x", "\xff", "\xff\xfe", "e", "ab", "nobody", entries[0].Data[:9], entries[0].Data + "a"}
		for _, e := range entries {
			terms = append(terms, site.Fold(randomText(random, 2)), site.Fold(e.ENS.Name))
		}
		checkIndex(t, shard, terms)
		x, ok := scan.IndexShard(shard)
		if !ok || x.Header != h || x.Len() != len(entries) {
			t.Fatalf("%s: got %v, %+v, want an index of %d entries", shard, ok, x, len(entries))
		}
	}
}

func TestShardIndexRefuses(t *testing.T) {
	const header = `{"list":"1","total":2,"shard":0,"shards":1,"shard_size":1000,"entries":[`
	const follow = `{"version":1,"record_type":"address","data":"0x00000000000000000000000000000000000000a1","tags":[],"ens":{"name":"","avatar":""}}`
	for _, shard := range []string{
		"", "{}", header + "]}", header + follow, `{"entries":[` + follow + "]}",
		header + follow + `,{"version":2,"record_type":"address"}]}`,
		header + `{"version":1,"record_type":"address","data":"` + "\xfe\xfe0000000000000000000000000000000000000001" + `","tags":[]}]}`,
	} {
		if _, ok := scan.IndexShard([]byte(shard)); ok {
			t.Errorf("%q: got an index, want none", shard)
		}
	}
}

// checkIndex compares an index with a scan, if the shard has one.
func checkIndex(t testing.TB, shard []byte, terms []string) {
	t.Helper()
	x, ok := scan.IndexShard(shard)
	if !ok {
		return
	}
	for _, term := range terms {
		next := x.Next(0, []byte(term))
		i := 0
		for entry := range scan.Entries(shard) {
			if got := string(x.Entry(shard, i)); got != string(entry) {
				t.Fatalf("entry %d of %q: got %q, want %q", i, shard, got, entry)
			}
			if want := scan.NewMatcher(term).Match(entry); want != (next == i) {
				t.Fatalf("term %q, entry %d of %q: got next %d, want a match: %v", term, i, shard, next, want)
			}
			if next == i {
				next = x.Next(i+1, []byte(term))
			}
			i++
		}
		if next != i || x.Len() != i {
			t.Fatalf("term %q in %q: got %d of %d entries at the end, want %d", term, shard, next, x.Len(), i)
		}
	}
}
