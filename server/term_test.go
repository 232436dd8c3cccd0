package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/storage"
)

// A term that is not UTF-8 finds nothing, not even names with the replacement character. Only that
// character finds those names.
func TestATermThatIsNotUTF8(t *testing.T) {
	snapshot := afero.NewMemMapFs()
	var records, accounts strings.Builder
	for n, name := range []string{"odd\uFFFDname.eth", "\u00e3.eth", "fox.eth"} {
		records.WriteString(`{"token_id":"1","version":1,"record_type":"address","data":"` + numbered(n) + `"}` + "\n")
		accounts.WriteString(`{"address":"` + numbered(n) + `","ens":{"name":"` + name + `"}}` + "\n")
	}
	for name, text := range map[string]string{
		"meta.json": `{"format":1,"as_of":"2026-01-01T00:00:00Z"}`, "events.ndjson": "", "badges.ndjson": "",
		"lists.ndjson": `{"token_id":"1","owner":"` + numbered(99) + `"}`, "records.ndjson": records.String(), "accounts.ndjson": accounts.String(),
	} {
		if err := afero.WriteFile(snapshot, name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	base := serve(t, storage.NewFolder(generated(t, snapshot)))
	for term, found := range map[string]int{
		"%EF%BF%BD": 1, "D%EF%BF%BDn": 1, "fox": 1, "%C3%A3": 1, "eth": 3,
		"%FF": 0, "%C3": 0, "%A3": 0, "fox%FF": 0, "%FFfox": 0, "d%FFn": 0, "%EF%BF": 0, "%ED%A0%80": 0, "+%FF+": 0, "%C0%A6": 0,
	} {
		r, body := request(t, http.MethodGet, base+"/api/v1/lists/1/searchFollowing?term="+term)
		if got := strings.Count(body, `"version"`); r.StatusCode != http.StatusOK || got != found {
			t.Errorf("term=%s: got status %d and %d entries, want 200 and %d", term, r.StatusCode, got, found)
		}
	}
	if r, _ := request(t, http.MethodGet, base+"/api/v1/lists/2/searchFollowing?term=%FF"); r.StatusCode != http.StatusNotFound {
		t.Errorf("in a list that is not there: got status %d, want 404", r.StatusCode)
	}
}
