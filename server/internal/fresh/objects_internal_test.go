package fresh

import (
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/site"
)

const (
	someAddress = "0x00000000000000000000000000000000000000aa"
	someEvent   = `{"id":7,"fancy_id":"f","name":"n","event_url":"u","image_url":"i","country":"","city":"","description":"d","year":2024,"start_date":"s","end_date":"e","expiry_date":"x"}`
)

// A refresh keeps everything in details and badges that it does not replace.
func TestDetailsAndBadgesComeThrough(t *testing.T) {
	config, err := site.Config{BadgesField: "po<aps"}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	details := `{"address":"` + someAddress + `","ens":{"name":"<a>&\u2028","avatar":"","header":"","display":"","records":{"z":"<b>","a":{"c":1.50}},"chains":{},` +
		`"fresh":0,"resolver":"","errors":{}},"ranks":{"mutuals_rank":"0","followers_rank":"1","following_rank":"2","top8_rank":"3","blocks_rank":"4"},"primary_list":null}`
	d, account, err := site.DecodeDetails([]byte(details))
	if err != nil || account.String() != someAddress {
		t.Fatalf("got %v, %v, want %s", account, err, someAddress)
	}
	if body, err := encode(d); err != nil || string(body) != details {
		t.Errorf("got  %s %v\nwant %s", body, err, details)
	}
	badges := `{"po<aps":[{"eventId":"7","participated":true,"collection":{"event":` + someEvent + `,"tokenId":"1","owner":"` + someAddress +
		`"}},{"eventId":"8","participated":false,"collection":null}]}`
	for _, text := range []string{badges, `{"po<aps":[]}`} {
		items, err := decodeBadges(config, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if body, err := encodeBadges(config, items); err != nil || string(body) != text {
			t.Errorf("got  %s %v\nwant %s", body, err, text)
		}
	}
	for _, bad := range []string{`{}`, `{"badges":[]}`, `{"po<aps":null}`, `{"po<aps":{}}`, `[]`, ``} {
		if _, err := decodeBadges(config, []byte(bad)); err == nil {
			t.Errorf("badges %q: got no error, want one", bad)
		}
	}
	for _, bad := range []string{`{}`, `{"address":"x"}`, `[]`, ``} {
		if _, _, err := site.DecodeDetails([]byte(bad)); err == nil {
			t.Errorf("details %q: got no error, want one", bad)
		}
	}
}

// A refresh writes accounts byte for byte as the generator does.
func TestAccountsAsTheGeneratorWritesThem(t *testing.T) {
	t.Parallel()
	accounts := 0
	for seed := range uint64(6) {
		files, _, err := generator.ToMemory(t.Context(), afero.FromIOFS{FS: naive.Random(seed)}, generator.Options{Config: site.Config{API: site.APIEFP}})
		if err != nil {
			t.Fatal(err)
		}
		all, err := memsite.Read(files)
		if err != nil {
			t.Fatal(err)
		}
		for key, want := range all {
			if !strings.HasSuffix(string(key), "/"+string(site.Account)) || !strings.HasPrefix(string(key), "api/") {
				continue
			}
			a, _, err := decodeAccount([]byte(want))
			if got := string(a.encode()); err != nil || got != want {
				t.Errorf("seed %d, %s: got %v\n%s\nwant %s", seed, key, err, got, want)
			}
			accounts++
		}
	}
	if accounts < 100 {
		t.Errorf("accounts: got %d, want many", accounts)
	}
}
