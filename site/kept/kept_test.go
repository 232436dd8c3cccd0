package kept

import (
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
)

// TestKeys: the objects are where no base path of a site can be, everybody may read them, and an index is no piece.
func TestKeys(t *testing.T) {
	if folder := strings.TrimSuffix(string(Prefix), "/"); !slices.Contains(site.Reserved(), folder) || !slices.Contains(site.Config{}.PublicKeys(), folder+"/*") {
		t.Errorf("%s is not reserved, or not public", folder)
	}
	digest := site.Sum256(nil)
	if piece, index := PieceKey(digest), IndexKey(digest); IsIndex(piece) || !IsIndex(index) || !piece.Valid() || !index.Valid() {
		t.Errorf("got %s and %s", piece, index)
	}
}
