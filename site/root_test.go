package site_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
)

func testRoot(t testing.TB) site.Root {
	root := site.Root{
		Format: site.Format, AsOf: "2026-03-01T02:03:04Z", Config: defaultConfig(t), BucketDigits: 2, ShardDigits: 1,
		HeaderRules: site.Config{}.HeaderRules(), Manifest: map[string]site.SHA256{},
		Inputs: testInputs(),
		Counts: site.Counts{Accounts: 1, Lists: 2, Primary: 3, Records: 4, Follows: 5, Names: 6, Events: 7, Objects: 8, Bytes: 9},
	}
	for _, shard := range site.HashPrefixes(root.ShardDigits) {
		root.Manifest[shard] = site.Sum256([]byte(shard))
	}
	return root
}

func testInputs() *site.Inputs {
	digest, ops := site.Sum256([]byte("digest")), uint64(7)
	return &site.Inputs{
		Generator: "v1.2.3", Tables: map[string]site.SHA256{"events": digest, "lists": digest, "accounts": digest, "records": digest, "badges": digest},
		ListOps: &ops, OpsFrom: "2026-01-01T00:00:00Z",
		Chains: []site.ChainInput{
			{ChainID: 1, Block: 7, Hash: "0x" + strings.Repeat("0a", 32), Events: 3}, {ChainID: 10, Block: 8, Hash: "0x" + strings.Repeat("0b", 32)},
		},
		Profiles:  &site.ServiceInput{Source: "https://example.com/u", From: "2026-01-01T00:00:00Z", Until: "2026-01-02T00:00:00Z", Digest: digest},
		Badges:    &site.ServiceInput{Source: "https://example.com:81/b", Digest: digest},
		Refreshed: &digest, BadgesAsOf: "2026-01-01T00:00:00Z", Ranks: &digest,
	}
}

func encodeRoot(t testing.TB, root site.Root) string {
	t.Helper()
	body, err := root.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestRootRoundTrip(t *testing.T) {
	root := testRoot(t)
	body := encodeRoot(t, root)
	const start = `{"format":2,"as_of":"2026-03-01T02:03:04Z",` +
		`"config":{"base_path":"api/v1","badges_field":"badges","leaderboard_max":100,"max_profile_text":65536},"user_bucket_digits":2,"manifest_digits":1,`
	if !strings.HasPrefix(body, start) {
		t.Errorf("the root: got %s, want %s…", body, start)
	}
	again, err := site.ParseRoot([]byte(body))
	if err != nil || !reflect.DeepEqual(again, root) {
		t.Errorf("ParseRoot: got %+v, %v, want %+v", again, err, root)
	}
}

// A field of the configuration that a root does not have has its default.
func TestParseRootFillsDefaults(t *testing.T) {
	root := testRoot(t)
	root.Config = site.Config{BadgesField: "poaps"}
	got, err := site.ParseRoot([]byte(encodeRoot(t, root)))
	if want := (site.Config{BasePath: "api/v1", BadgesField: "poaps", LeaderboardMax: 100, MaxProfileText: 65536}); err != nil || got.Config != want {
		t.Errorf("the configuration: got %+v, %v, want %+v", got.Config, err, want)
	}
}

// Sites are compared by the bytes of their roots.
func TestEqualRootsAreEqualBytes(t *testing.T) {
	body := encodeRoot(t, testRoot(t))
	for range 20 { // maps have another order every time
		equal(t, "root", encodeRoot(t, testRoot(t)), body)
	}
	one, other := testRoot(t), testRoot(t)
	equal(t, "equal roots", one.Equal(&other), true)
	for name, change := range map[string]func(*site.Root){
		"as_of":        func(r *site.Root) { r.AsOf = "2026-03-02T02:03:04Z" },
		"config":       func(r *site.Root) { r.Config.BadgesField = "poaps" },
		"buckets":      func(r *site.Root) { r.BucketDigits = 3 },
		"api":          func(r *site.Root) { r.Config.API = site.APIEFP },
		"header rules": func(r *site.Root) { r.HeaderRules["_site"] = site.Sum(nil) },
		"counts":       func(r *site.Root) { r.Counts.Bytes++ },
		"manifest":     func(r *site.Root) { r.Manifest["f"] = site.Sum256(nil) },
		"table":        func(r *site.Root) { r.Inputs.Tables["lists"] = site.Sum256(nil) },
		"block":        func(r *site.Root) { r.Inputs.Chains[0].Block++ },
		"list_ops":     func(r *site.Root) { *r.Inputs.ListOps++ },
	} {
		root := testRoot(t)
		change(&root)
		if encodeRoot(t, root) == body || root.Equal(&one) {
			t.Errorf("another %s: got an equal root, want a different one", name)
		}
	}
}

func TestParseRootRefuses(t *testing.T) {
	for name, breakIt := range map[string]func(*site.Root){
		"no format":            func(r *site.Root) { r.Format = 0 },
		"a newer format":       func(r *site.Root) { r.Format = 3 },
		"no bucket digits":     func(r *site.Root) { r.BucketDigits = 0 },
		"too many of them":     func(r *site.Root) { r.BucketDigits = 5 },
		"negative digits":      func(r *site.Root) { r.ShardDigits = -1 },
		"no shard digits":      func(r *site.Root) { r.ShardDigits = 0 },
		"huge shard digits":    func(r *site.Root) { r.ShardDigits = 1 << 30 },
		"digits without them":  func(r *site.Root) { r.ShardDigits = 2 },
		"a shard is missing":   func(r *site.Root) { delete(r.Manifest, "a") },
		"a shard too many":     func(r *site.Root) { r.Manifest["10"] = site.Sum256(nil) },
		"no manifest":          func(r *site.Root) { r.Manifest = nil },
		"no as_of":             func(r *site.Root) { r.AsOf = "" },
		"as_of without time":   func(r *site.Root) { r.AsOf = "2026-03-01" },
		"as_of without zone":   func(r *site.Root) { r.AsOf = "2026-03-01T02:03:04" },
		"as_of on no day":      func(r *site.Root) { r.AsOf = "2026-02-30T02:03:04Z" },
		"a bad base path":      func(r *site.Root) { r.Config.BasePath = "../x" },
		"a reserved one":       func(r *site.Root) { r.Config.BasePath = "_site" },
		"an unknown api":       func(r *site.Root) { r.Config.API = "v3" },
		"a bad maximum":        func(r *site.Root) { r.Config.LeaderboardMax = 9 },
		"a generator of lines": func(r *site.Root) { r.Inputs.Generator = "a\nb" },
		"a long generator":     func(r *site.Root) { r.Inputs.Generator = strings.Repeat("a", 257) },
		"a strange table":      func(r *site.Root) { r.Inputs.Tables["../lists"] = site.Sum256(nil) },
		"many tables": func(r *site.Root) {
			for i := range 33 {
				r.Inputs.Tables[strings.Repeat("a", i+1)] = site.Sum256(nil)
			}
		},
		"a chain twice":             func(r *site.Root) { r.Inputs.Chains[1].ChainID = 1 },
		"chains in no order":        func(r *site.Root) { slices.Reverse(r.Inputs.Chains) },
		"a hash without 0x":         func(r *site.Root) { r.Inputs.Chains[0].Hash = strings.Repeat("0a", 33) },
		"a short hash":              func(r *site.Root) { r.Inputs.Chains[0].Hash = "0x00" },
		"a hash of other digits":    func(r *site.Root) { r.Inputs.Chains[0].Hash = "0x" + strings.Repeat("0A", 32) },
		"too many chains":           func(r *site.Root) { r.Inputs.Chains = chains(65) },
		"chains beyond all bounds":  func(r *site.Root) { r.Inputs.Chains = make([]site.ChainInput, 10_000) },
		"ops_from that is no time":  func(r *site.Root) { r.Inputs.OpsFrom = "yesterday" },
		"badges of no time":         func(r *site.Root) { r.Inputs.BadgesAsOf = "yesterday" },
		"a source with a secret":    func(r *site.Root) { r.Inputs.Profiles.Source = "https://user:word@example.com/" },
		"a source with a query":     func(r *site.Root) { r.Inputs.Badges.Source = "https://example.com/?key=1" },
		"a long source":             func(r *site.Root) { r.Inputs.Badges.Source = "https://example.com/" + strings.Repeat("a", 2048) },
		"answers of no digest":      func(r *site.Root) { r.Inputs.Badges.Digest = site.SHA256{} },
		"answers of no time":        func(r *site.Root) { r.Inputs.Profiles.From = "yesterday" },
		"answers until another one": func(r *site.Root) { r.Inputs.Profiles.Until = "tomorrow" },
	} {
		root := testRoot(t)
		breakIt(&root)
		got, err := site.ParseRoot([]byte(encodeRoot(t, root)))
		if err == nil || !strings.Contains(err.Error(), "_site") {
			t.Errorf("%s: got the error %v, want one that names the root", name, err)
		}
		if !reflect.DeepEqual(got, site.Root{}) {
			t.Errorf("%s: got a root with the error, want none", name)
		}
		equal(t, name+" is a newer format", errors.Is(err, site.ErrNewer), root.Format > site.Format)
	}
	for _, body := range []string{"", "null", "[]", `"x"`, "{}", "<html>", `{"format":"1"}`, `{"format":1}`, `{"format":2}`, encodeRoot(t, testRoot(t)) + "x"} {
		if _, err := site.ParseRoot([]byte(body)); err == nil {
			t.Errorf("ParseRoot(%q): got no error, want one", body)
		}
	}
}

// Only ParseServedRoot accepts the root of a live site.
func TestLiveRoot(t *testing.T) {
	root := testRoot(t)
	root.Live, root.Manifest, root.Counts.Bytes = true, nil, 0
	body := encodeRoot(t, root)
	if got, err := site.ParseServedRoot([]byte(body)); err != nil || !reflect.DeepEqual(got, root) {
		t.Errorf("ParseServedRoot: got %+v, %v, want %+v", got, err, root)
	}
	if got, err := site.ParseRoot([]byte(body)); err == nil || !strings.Contains(err.Error(), "live") || !reflect.DeepEqual(got, site.Root{}) {
		t.Errorf("ParseRoot: got %+v, %v, want an error for a live root", got, err)
	}
	root.Manifest = testRoot(t).Manifest
	if _, err := site.ParseServedRoot([]byte(encodeRoot(t, root))); err == nil {
		t.Error("a live root with a manifest: got no error, want one")
	}
	whole := testRoot(t)
	if got, err := site.ParseServedRoot([]byte(encodeRoot(t, whole))); err != nil || !reflect.DeepEqual(got, whole) {
		t.Errorf("ParseServedRoot of a whole site: got %+v, %v, want %+v", got, err, whole)
	}
}

// chains returns the inputs of n chains.
func chains(n int) (all []site.ChainInput) {
	for i := range n {
		all = append(all, site.ChainInput{ChainID: uint64(i), Hash: "0x" + strings.Repeat("00", 32)})
	}
	return all
}

// A root may name 64 chains, and need not name any.
func TestRootNamesChains(t *testing.T) {
	for _, n := range []int{0, 1, 64} {
		root := testRoot(t)
		root.Inputs = &site.Inputs{Tables: map[string]site.SHA256{}, Chains: chains(n)}
		if got, err := site.ParseRoot([]byte(encodeRoot(t, root))); err != nil || !reflect.DeepEqual(got, root) {
			t.Errorf("%d chains: got %+v, %v, want %+v", n, got, err, root)
		}
	}
	root := testRoot(t)
	root.Inputs = nil
	if got, err := site.ParseRoot([]byte(encodeRoot(t, root))); err != nil || !reflect.DeepEqual(got, root) {
		t.Errorf("no inputs: got %+v, %v, want %+v", got, err, root)
	}
}

// The error for a root of an older format names the remedy.
func TestRootOfAnOlderFormat(t *testing.T) {
	body := strings.Replace(encodeRoot(t, testRoot(t)), `"format":2`, `"format":1`, 1)
	for name, parse := range map[string]func([]byte) (site.Root, error){"ParseRoot": site.ParseRoot, "ParseServedRoot": site.ParseServedRoot} {
		if got, err := parse([]byte(body)); err == nil || errors.Is(err, site.ErrNewer) || !strings.Contains(err.Error(), "publish the site again") || !reflect.DeepEqual(got, site.Root{}) {
			t.Errorf("%s: got %+v, %v, want an error with the remedy", name, got, err)
		}
	}
}

// Above 256 shards the root names indexes, so that it stays small.
func TestRootNamesIndexes(t *testing.T) {
	for digits, want := range map[int]int{1: 1, 2: 2, 3: 1, 4: 2} {
		root := testRoot(t)
		root.ShardDigits, root.Manifest = digits, map[string]site.SHA256{}
		for _, name := range site.HashPrefixes(want) {
			root.Manifest[name] = site.SHA256{1}
		}
		equal(t, "digits in the root", site.RootDigits(digits), want)
		body := encodeRoot(t, root)
		if _, err := site.ParseRoot([]byte(body)); err != nil || len(body) > 40<<10 {
			t.Errorf("%d digits: got a root of %d bytes, %v", digits, len(body), err)
		}
	}
}
