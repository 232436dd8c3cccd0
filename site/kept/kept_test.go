package kept

import (
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
)

// TestKeys: the objects are outside of all base paths of a site and public, and an index is not a
// piece.
func TestKeys(t *testing.T) {
	if folder := strings.TrimSuffix(string(Prefix), "/"); !slices.Contains(site.Reserved(), folder) || !slices.Contains(site.Config{}.PublicKeys(), folder+"/*") {
		t.Errorf("%s is not reserved, or not public", folder)
	}
	digest := site.Sum256(nil)
	if piece, index := PieceKey(digest), IndexKey(digest); IsIndex(piece) || !IsIndex(index) || !piece.Valid() || !index.Valid() {
		t.Errorf("got %s and %s", piece, index)
	}
}
