package explorer_test

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
)

// newKey returns the same key for the same name and seed, so that screenshots stay comparable.
func newKey(t *testing.T, name string, seed byte) testkey.Key {
	t.Helper()
	secret := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	public, err := note.PublicOf(name, secret.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	signer, err := note.External(public, func(text []byte) ([]byte, error) { return ed25519.Sign(secret, text), nil })
	if err != nil {
		t.Fatal(err)
	}
	return testkey.Key{Signer: signer, Public: public}
}

// A chained is a snapshot with the last block of each chain.
type chained struct{ fs.FS }

const blocks = `"chains":[{"chain_id":10,"block":118000000},{"chain_id":8453,"block":23456789,"hash":"0x` +
	`1b0f1a3e6b3c2d9a8f7e6d5c4b3a29181706f5e4d3c2b1a09f8e7d6c5b4a3928"}],"profiles":{"source":"https://names.example/u","digest":"` +
	`8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4"}`

func (c chained) Open(name string) (fs.File, error) {
	if name == "meta.json" {
		return fstest.MapFS{name: {Data: []byte(`{"format":1,"as_of":"2026-11-01T00:00:00Z",` + blocks + `}`), Mode: 0o644}}.Open(name)
	}
	return c.FS.Open(name)
}

// naming returns the demo's site with public keys in its settings.
func naming(t *testing.T, api string, keys ...string) memsite.Site {
	return generate(t, chained{fixtures.Demo()}, site.Config{API: api, ExplorerKeys: strings.Join(keys, " ")})
}

// knowing returns a script that stores the reader's keys of a site in the browser.
func knowing(base string, keys ...string) string {
	return fmt.Sprintf("location.protocol === 'about:' || localStorage.setItem('followpress own %s', %q);", base, strings.Join(keys, " "))
}

// absent lists objects that readers with keys request and that most sites lack.
var absent = []string{"/_manifest/delta/", "/_next/", "/_site.note"}

// sealed waits until the seal shows a text.
func sealed(t *testing.T, p *browser.Page, text string) {
	t.Helper()
	p.Wait(fmt.Sprintf("document.querySelector('.seal')?.innerText.includes(%q)", text))
}

// Verified content is shown, and the seal lists the checks, in every view of sites of both APIs.
// Content that differs from the signed one is never shown, and the seal says why.
func TestSeal(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	k := newKey(t, "follow.example", 1)
	efp := naming(t, site.APIEFP)
	const details, bio = site.Key("api/v1/users/0x2d5a6b1c0e4f88a3b7c9d1e2f30415263748596a/details"), "sourdough by night"
	altering := ""
	for of, body := range efp {
		if strings.Contains(body, bio) && strings.HasSuffix(string(of), "/details") && strings.Contains(string(of), "users/0x") {
			altering = string(of)
		}
	}
	if altering == "" {
		t.Fatalf("no object like %s has %q", details, bio)
	}
	alter := func(of memsite.Site, key site.Key, old, now string) memsite.Site {
		of = maps.Clone(of)
		if !strings.Contains(of[key], old) {
			t.Fatalf("%s: got %.100q, want %q in it", key, of[key], old)
		}
		of[key] = strings.ReplaceAll(of[key], old, now)
		return of
	}
	own := naming(t, site.APIEFP, k.Public)
	for name, test := range map[string]struct {
		site    memsite.Site
		keys    []string // keys of the reader
		seal    string
		refused bool
	}{
		"right, by the reader's key":       {k.Sign(t, efp, 7), []string{k.Public}, "Signed by follow.example, as of block 118,000,000 (chain 10), 23,456,789 (chain 8453). Verified by this browser:", false},
		"right, by the site's key":         {k.Sign(t, own, 7), nil, "The key came from this site itself.", false},
		"right, of the specification":      {k.Sign(t, naming(t, ""), 7), []string{k.Public}, "Signed by follow.example", false},
		"no key":                           {k.Sign(t, efp, 7), nil, "Proof", false},
		"no signature and no key":          {efp, nil, "Proof", false},
		"no signature":                     {efp, []string{k.Public}, "Not signed with a key this browser knows", true},
		"another key":                      {k.Sign(t, efp, 7), []string{newKey(t, "follow.example", 2).Public}, "Not signed with a key this browser knows", true},
		"the reader's key goes first":      {k.Sign(t, own, 7), []string{newKey(t, "other.example", 2).Public}, "Not signed with a key this browser knows", true},
		"an altered object":                {alter(k.Sign(t, efp, 7), site.Key(altering), bio, "ALTERED by night"), []string{k.Public}, "Altered: 1 file differs from what was signed, and is not shown.", true},
		"an altered root":                  {alter(k.Sign(t, efp, 7), site.RootKey, `"accounts":`, `"accounts":1`), []string{k.Public}, "Altered:", true},
		"a root that says that it is live": {alter(k.Sign(t, efp, 7), site.RootKey, `"format":2`, `"live":true,"format":2`), []string{k.Public}, "Altered:", true},
		"an announced root of others": {func() memsite.Site {
			s := alter(k.Sign(t, efp, 7), site.RootKey, `"accounts":`, `"accounts":1`)
			s["_next/_site.note"] = k.Sign(t, own, 8)[note.Key]
			return s
		}(), []string{k.Public}, "A new version is being published.", true},
	} {
		t.Run(name, func(t *testing.T) {
			h := serve(t, withReports(test.site), "/")
			v := browser.View{Size: browser.Phone, Now: now}
			if test.keys != nil {
				v.Before = knowing(h.URL, test.keys...)
			}
			p := b.Open(t, h.at("#/miralund.eth"), v)
			p.Forgive(absent...)
			sealed(t, p, test.seal)
			if test.refused {
				p.WaitFor(".failed a[href='#/proof']")
				if got := p.Text("body"); strings.Contains(got, "ALTERED") || strings.Contains(got, bio) {
					t.Errorf("got %.1000q, want no unverified content", got)
				}
				return
			}
			shown(t, p)
			if got := p.Text("main"); !strings.Contains(got, bio) && test.site[site.RootKey] != "" && strings.Contains(test.site[site.RootKey], "efp") {
				t.Errorf("got %.300q, want %q in it", got, bio)
			}
			barriers(t, p)
		})
	}
}

// Every view of a signed site equals the same view of an unsigned one: all objects that it reads
// can be checked.
func TestSealedViews(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	k := newKey(t, "follow.example", 1)
	happened := k.Sign(t, generate(t, withOps(t, fixtures.Demo(), lately()), site.Config{API: site.APIEFP, HistoryWindow: site.Window(site.DefaultHistoryWindow)}), 1)
	h := serve(t, withReports(happened), "/a/b/")
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Desktop, Now: now, Before: knowing(h.URL, k.Public)})
	p.Forgive(absent...)
	all := append(demoViews(),
		view{"activity", "#/a/miralund.eth/activity", []string{"7 of 7"}, nil}, view{"then", "#/a/miralund.eth/then?day=2026-10-24", []string{"removed Oct 30, 2026"}, nil},
		view{"growth", "#/network", []string{"5 new follows and 2 unfollows"}, nil}, view{"unsigned reports", "#/reports", []string{"Reports are not signed"}, nil})
	for _, v := range all {
		t.Run(v.name, func(t *testing.T) {
			p.For(t)
			p.Go("about:blank")
			p.Go(h.at(v.at))
			shown(t, p)
			for _, text := range v.texts {
				if got := p.Text("body"); !strings.Contains(got, text) {
					t.Errorf("got %.500q, want %q in it", got, text)
				}
			}
			sealed(t, p, "Signed by follow.example")
		})
	}
}

// Objects that the explorer reads without the client library are checked too.
func TestSealOfOwnObjects(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	k := newKey(t, "follow.example", 1)
	happened := k.Sign(t, generate(t, withOps(t, fixtures.Demo(), lately()), site.Config{API: site.APIEFP, HistoryWindow: site.Window(site.DefaultHistoryWindow)}), 1)
	for place, altered := range map[string]string{
		"#/": "_explore/start", "#/network": "_explore/network", "#/a/miralund.eth/activity": "_search/activity/",
	} {
		t.Run(altered, func(t *testing.T) {
			s, n := maps.Clone(happened), 0
			for of, body := range s {
				if strings.HasPrefix(string(of), altered) {
					s[of], n = body+" ", n+1
				}
			}
			if n == 0 {
				t.Fatalf("no object begins with %s", altered)
			}
			h := serve(t, s, "/")
			p := b.Open(t, h.at(place), browser.View{Size: browser.Phone, Now: now, Before: knowing(h.URL, k.Public)})
			p.Forgive(absent...)
			p.WaitFor(".failed a[href='#/proof']")
			sealed(t, p, "Altered: 1 file")
		})
	}
}

// The view of the seal shows signed and unchecked parts, at three sizes, in light and
// dark, without barriers. A reader who types a key sees the site checked by it, and may remove the
// key.
func TestProofView(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	k := newKey(t, "follow.example", 1)
	h := serve(t, k.Sign(t, naming(t, site.APIEFP), 7), "/")
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now})
	p.Forgive(absent...)
	shown(t, p)
	p.Click(".seal")
	shown(t, p)
	p.Click("main .stack > p > button")
	p.WaitForText("The site is signed in the name of follow.example, but this browser has no key")
	p.Click("#given")
	p.Press("PRIVATE+KEY+x")
	p.Click("form button[type=submit]")
	p.WaitForText("That is not a public key.")
	barriers(t, p)
	browser.Eval[any](p, "document.querySelector('#given').select()")
	p.Press(k.Public)
	p.Click("form button[type=submit]")
	sealed(t, p, "Signed by follow.example")
	shown(t, p)
	for _, text := range []string{"You entered these keys", "23,456,789", "0x1b0f", "Profiles come from https://names.example/u.", "followpress reproduce " + h.URL + " --key " + k.Public} {
		if got := p.Text("main"); !strings.Contains(got, text) {
			t.Errorf("got %.2000q, want %q in it", got, text)
		}
	}
	for _, size := range []browser.Size{browser.Phone, browser.Tablet, browser.Desktop} {
		p.Resize(size)
		fits(t, p)
		barriers(t, p)
	}
	dark := b.Open(t, h.at("#/proof"), browser.View{Size: browser.Tablet, Now: now, Dark: true, Before: knowing(h.URL, k.Public)})
	dark.Forgive(absent...)
	sealed(t, dark, "Signed by follow.example")
	shown(t, dark)
	barriers(t, dark)

	p.Click("form button[type=button]")
	sealed(t, p, "Proof")
}

// The browser remembers the keys that a site lists on the first visit. A root signed with them may
// list new keys. An unsigned change of keys is refused until the reader trusts the new keys.
func TestRememberedKeys(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	one, two, three := newKey(t, "follow.example", 1), newKey(t, "follow.example", 2), newKey(t, "follow.example", 3)
	h := serve(t, one.Sign(t, naming(t, "", one.Public), 1), "/")
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now})
	p.Forgive(absent...)
	visit := func(s memsite.Site) {
		t.Helper()
		h.deploy(s)
		p.Go("about:blank")
		p.Go(h.at("#/proof"))
	}
	remembers := func(k testkey.Key) {
		t.Helper()
		sealed(t, p, "Signed by follow.example")
		p.Wait(fmt.Sprintf("localStorage.getItem('followpress first %s') === %q", h.URL, k.Public))
	}
	remembers(one)
	visit(one.Sign(t, naming(t, "", two.Public), 2, two)) // signed by both keys (docs/proof.md): a page may load twice
	remembers(two)
	visit(two.Sign(t, naming(t, "", two.Public), 3))
	remembers(two)
	visit(three.Sign(t, naming(t, "", three.Public), 4))
	sealed(t, p, "Not signed with a key this browser knows, so it is not shown. This site now names different keys than before.")
	visit(three.Sign(t, naming(t, ""), 5))
	sealed(t, p, "Not signed with a key this browser knows")
	visit(three.Sign(t, naming(t, "", three.Public), 6))
	sealed(t, p, "names different keys")
	barriers(t, p)
	p.Click("section[aria-labelledby=keys] > div button")
	remembers(three)
}

// A site older than the last one seen is refused. Objects in the service worker's cache are checked
// like fetched ones.
func TestSealOffline(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	k := newKey(t, "follow.example", 1)
	efp := naming(t, site.APIEFP)
	h := serve(t, k.Sign(t, efp, 7), "/")
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now, Before: knowing(h.URL, k.Public)})
	p.Forgive(append(absent, "net::ERR_", "Failed to fetch", "Failed to load resource", "status 50")...)
	shown(t, p)
	controlled(p)
	visit := func(at string) {
		t.Helper()
		p.Go("about:blank")
		p.Go(h.at(at))
	}
	visit("#/miralund.eth")
	shown(t, p)
	sealed(t, p, "Signed by follow.example")
	p.Settle()

	h.leave(true)
	visit("#/miralund.eth")
	shown(t, p)
	sealed(t, p, "Signed by follow.example")
	p.WaitForText("The site cannot be reached.")

	const bio = "sourdough by night"
	altered := browser.Eval[int](p, fmt.Sprintf(`(async () => {
		let altered = 0;
		for (const name of await caches.keys()) {
			const cache = await caches.open(name);
			for (const request of await cache.keys()) {
				const response = await cache.match(request);
				const text = await response.text();
				if (text.includes(%q)) {
					altered++;
					await cache.put(request, new Response(text.replaceAll(%[1]q, 'ALTERED by night'), { status: 200, headers: response.headers }));
				}
			}
		}
		return altered;
	})()`, bio))
	if altered == 0 {
		t.Fatal("the worker has kept no object to alter")
	}
	visit("#/miralund.eth")
	p.WaitFor(".failed") // without a network, no valid object is available
	if got := p.Text("body"); strings.Contains(got, "ALTERED") {
		t.Errorf("got %.500q, want no altered content", got)
	}

	h.leave(false)
	visit("#/miralund.eth")
	shown(t, p)
	sealed(t, p, "Signed by follow.example")
	h.deploy(k.Sign(t, efp, 6))
	visit("#/miralund.eth")
	sealed(t, p, "Older than a version this browser has already seen")
	p.WaitFor(".failed")
}

// Answers of a live site are unsigned, and the seal says so.
func TestSealOfLiveSite(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serveLive(t, afero.FromIOFS{FS: fixtures.Demo()})
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone})
	connected(t, p)
	sealed(t, p, "Live data, not signed.")
}
