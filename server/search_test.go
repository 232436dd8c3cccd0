package server_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"

	json "github.com/goccy/go-json"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/internal/twin/answers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// Any page of any term equals a plain filter over all entries.
func TestSearchEqualsAPlainFilter(t *testing.T) {
	t.Parallel()
	files := demo(t)
	base := serve(t, storage.NewFolder(files))
	for _, list := range []string{"104", "67", "110", "140"} {
		all := allEntries(t, files, list)
		random := rand.New(rand.NewPCG(1, uint64(len(all))))
		for range 200 {
			term, limit, offset := randomTerm(random, all), 1+random.IntN(120), random.IntN(40)
			path := fmt.Sprintf("/api/v1/lists/%s/searchFollowing?term=%s&limit=%d&offset=%d", list, url.QueryEscape(term), limit, offset)
			_, body := request(t, http.MethodGet, base+path)
			if want := filter(all, term, min(limit, 100), offset); body != want {
				t.Fatalf("%s:\n got %s\nwant %s", path, body, want)
			}
		}
	}
}

// allEntries returns the follows of a list, from its shards or its only page.
func allEntries(t *testing.T, files afero.Fs, list string) []answers.SearchEntry {
	t.Helper()
	var page struct{ Following, Entries []answers.SearchEntry }
	body, err := afero.ReadFile(files, string(site.SearchShardKey(list, 0)))
	if err != nil {
		body, err = afero.ReadFile(files, "api/v1/lists/"+list+"/searchFollowing")
	}
	if err == nil {
		err = json.Unmarshal(body, &page)
	}
	if err != nil {
		t.Fatal(err)
	}
	return append(page.Following, page.Entries...)
}

func randomTerm(random *rand.Rand, all []answers.SearchEntry) string {
	if len(all) == 0 || random.IntN(8) == 0 {
		return ""
	}
	text := all[random.IntN(len(all))].ENS.Name
	if random.IntN(3) == 0 || text == "" {
		text = all[random.IntN(len(all))].Data
	}
	runes := []rune(text)
	from := random.IntN(len(runes))
	term := strings.TrimSpace(string(runes[from:min(len(runes), from+1+random.IntN(4))]))
	if random.IntN(2) == 0 {
		term = strings.ToUpper(term)
	}
	return term
}

func filter(all []answers.SearchEntry, term string, limit, offset int) string {
	found := []answers.SearchEntry{}
	for _, e := range all {
		if strings.Contains(site.Fold(e.ENS.Name), site.Fold(term)) || strings.Contains(e.Data, site.Fold(term)) {
			found = append(found, e)
		}
	}
	found = found[min(offset, len(found)):]
	body, err := json.MarshalWithOption(answers.FollowingPage{Following: found[:min(limit, len(found))]}, json.DisableHTMLEscape())
	if err != nil {
		panic(err)
	}
	return string(body)
}
