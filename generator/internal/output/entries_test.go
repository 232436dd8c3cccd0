package output

import (
	"testing"

	"github.com/followpress/followpress/site"
)

// The number of a shard equals the position of its name.
func TestShardNumber(t *testing.T) {
	for _, key := range []site.Key{"", "abc", "_site", "🦊fox.eth"} {
		for digits := 1; digits <= 4; digits++ {
			if got := site.HashPrefixes(digits)[shardNumber(key, digits)]; got != site.ManifestShard(key, digits) {
				t.Errorf("%s, %d digits: got %s, want %s", key, digits, got, site.ManifestShard(key, digits))
			}
		}
	}
}
