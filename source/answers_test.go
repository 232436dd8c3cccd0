package source_test

import (
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
)

// TestProfilesTold: a service's profiles and their times count, with any primary lists.
func TestProfilesTold(t *testing.T) {
	const rest = `","avatar":"","header":"","display":"","records":{},"chains":{},"fresh":`
	const end = `,"resolver":"","errors":{}}}`
	row := func(text string) []byte {
		sum := sha256.Sum256([]byte(text))
		return sum[:]
	}
	g := &source.Graph{Primary: map[site.Address]string{{2}: "20", {5}: "50"}}
	err := source.WriteAccounts(&rows{}, g,
		of(profileOf(1, "one", 61_000), profileOf(2, "two", 7)),
		of(profileOf(2, "newer", 90_500), profileOf(3, "untimed", 0)))
	if err != nil {
		t.Fatal(err)
	}
	want := row(`{"address":"0x0100000000000000000000000000000000000000","ens":{"name":"one` + rest + `61000` + end)
	want = append(want, row(`{"address":"0x0200000000000000000000000000000000000000","ens":{"name":"newer`+rest+`90500`+end)...)
	want = append(want, row(`{"address":"0x0300000000000000000000000000000000000000","ens":{"name":"untimed`+rest+`0`+end)...)
	if got, want := *g.Profiles, (site.ServiceInput{From: "1970-01-01T00:01:01Z", Until: "1970-01-01T00:01:30Z", Digest: site.Sum256(want)}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	none := &source.Graph{Primary: g.Primary}
	if err := source.WriteAccounts(&rows{}, none); err != nil || none.Profiles != nil {
		t.Errorf("no profiles: got %+v and the error %v, want nothing", none.Profiles, err)
	}
}

// TestFrom: the source that is named has nothing that may be secret.
func TestFrom(t *testing.T) {
	for service, want := range map[string]string{
		"":                            "",
		"https://ens.example":         "https://ens.example",
		"https://ens.example:8443/v1": "https://ens.example:8443/v1",
		"https://user:word@ens.example/v1?key=secret#secret": "https://ens.example/v1",
		"https://secret@ens.example?":                        "https://ens.example",
		"https://ens.example/%zz?secret":                     "",
		"https://ens.example/" + strings.Repeat("x", 2048):   "",
	} {
		var in site.ServiceInput
		if source.From(&in, service); in.Source != want {
			t.Errorf("%s: got %s, want %s", service, in.Source, want)
		}
	}
	source.From(nil, "https://ens.example")
}
