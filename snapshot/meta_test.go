package snapshot_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// metaOf returns a snapshot of meta.json alone.
func metaOf(t *testing.T, body string) afero.Fs {
	t.Helper()
	snap := afero.NewMemMapFs()
	if err := afero.WriteFile(snap, "meta.json", []byte(body), 0o644); err != nil {
		t.Fatal(err)
	}
	return snap
}

// TestInputs: meta.json may describe the inputs of a snapshot.
func TestInputs(t *testing.T) {
	digest := site.Sum256([]byte("digest"))
	hash := "0x" + strings.Repeat("0a", 32)
	chain := fmt.Sprintf(`{"chain_id":10,"block":7,"hash":"%s","events":3}`, hash)
	service := fmt.Sprintf(`{"source":"https://example.com/u","from":"2026-01-01T00:00:00Z","until":"2026-01-02T00:00:00Z","digest":"%s"}`, digest)
	told := &site.ServiceInput{Source: "https://example.com/u", From: "2026-01-01T00:00:00Z", Until: "2026-01-02T00:00:00Z", Digest: digest}
	for members, want := range map[string]site.Inputs{
		``:                                     {},
		`,"chains":[]`:                         {Chains: []site.ChainInput{}},
		`,"chains":[` + chain + `]`:            {Chains: []site.ChainInput{{ChainID: 10, Block: 7, Hash: hash, Events: 3}}},
		`,"profiles":` + service:               {Profiles: told},
		`,"badges":` + service:                 {Badges: told},
		`,"profiles":null,"more":[1]`:          {},
		`,"chains":[{"chain_id":1,"block":7}]`: {Chains: []site.ChainInput{{ChainID: 1, Block: 7}}},
	} {
		snap := metaOf(t, `{"format":1,"as_of":"2026-01-31T00:00:00Z"`+members+`}`)
		if got, err := snapshot.ReadInputs(snap); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v and the error %v, want %+v", members, got, err, want)
		}
		if _, err := snapshot.ReadAsOf(snap); err != nil {
			t.Errorf("%s: %v", members, err)
		}
	}
	for members, want := range map[string]string{
		`,"chains":{}`: "chains",
		`,"chains":[` + chain + `,` + chain + `]`: "chains: 10 comes after 10: sort them by chain_id, without duplicates",
		`,"chains":[{"chain_id":1,"hash":"0x"}]`:  "chains: hash of the block of chain 1: \"0x\" is not 0x and 64 hexadecimal digits in lower case",
		`,"profiles":{"source":"x"}`:              "profiles: digest: missing",
		`,"badges":{"source":"https://u:p@x/"}`:   "badges: source has a user, a query or a fragment, which may be secrets: leave them out",
		`,"badges":"x"`:                           "badges",
		strings.Repeat(" ", 1<<20):                "meta.json: more than 64 KiB",
	} {
		snap := metaOf(t, `{"format":1,"as_of":"2026-01-31T00:00:00Z"`+members+`}`)
		got, err := snapshot.ReadInputs(snap)
		if err == nil || !strings.HasPrefix(err.Error(), "meta.json: ") || strings.Contains(err.Error(), "bad JSON") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.50s: got the error %v, want one of meta.json: %s", members, err, want)
		}
		if !reflect.DeepEqual(got, site.Inputs{}) {
			t.Errorf("%.50s: got %+v with the error", members, got)
		}
	}
}
