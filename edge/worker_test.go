package edge_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/followpress/followpress/edge"
	"github.com/followpress/followpress/internal/testenv/servers"
)

// The Worker without its runtime: a cache that fails, one that hangs, and an R2 bucket.
const workerAlone = `
const headers = new Headers({ 'content-type': 'application/json', 'cache-control': 'public, max-age=60', 'set-cookie': 'a=b', 'x-request-id': '1' });
globalThis.fetch = async () => new Response('url', { headers });
const BUCKET = {
  get: async (key) => ({ body: key, httpEtag: '"1"', writeHttpMetadata: (to) => headers.forEach((text, name) => to.set(name, text)) }),
};
const worker = (await import('./worker.mjs')).default;
const puts = [async () => { throw new Error('the cache is full'); }, () => new Promise(() => {})];
for (const put of puts) {
  for (const env of [{}, { BUCKET }]) {
    let stored = '';
    globalThis.caches = { default: { match: async () => undefined, put: (key, response) => { stored = [...response.headers.keys()].join(); return put(); } } };
    const response = await worker.fetch(new Request('https://example.org/api/v1/lists/8/details'), env, { waitUntil() {} });
    const all = [...response.headers.keys(), stored].join();
    console.log(response.status, await response.text(), /cookie|request-id/.test(all));
  }
}
`

// An answer neither waits for the cache nor fails with it, and answers for one client are not
// cached.
func TestWorkerCacheFails(t *testing.T) {
	servers.Wanted(t)
	dir := render(t, "worker", "https://example.org/prefix", "", "")
	if err := os.Rename(filepath.Join(dir, "worker.js"), filepath.Join(dir, "worker.mjs")); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "test.mjs", workerAlone)
	out, err := exec.Command("node", filepath.Join(dir, "test.mjs")).Output()
	const object = "200 prefix/api/v1/lists/8/details false\n"
	if want := "200 url false\n" + object + "200 url false\n" + object; err != nil || string(out) != want {
		t.Errorf("got %s%v\nwant %s", out, err, want)
	}
}

// The Worker without its runtime, in front of objects with tags, of one without, and of nothing.
const workerTags = `
const worker = (await import('./worker.mjs')).default;
const object = (tags) => ({ body: 'r2', httpEtag: '"1"', writeHttpMetadata: (to) => to.set('cache-control', 'max-age=60'), customMetadata: tags });
const tagged = { 'cache-control': 'public, max-age=60', 'x-amz-meta-cache-tag': 'fp-list-8,fp-ranks' };
const origins = [
  [{}, () => new Response('url', { headers: tagged })],
  [{}, () => new Response('', { status: 404 })],
  [{ BUCKET: { get: async () => object({ 'cache-tag': 'fp-list-8,fp-ranks' }) } }],
  [{ BUCKET: { get: async () => object({}) } }],
  [{ BUCKET: { get: async () => null } }],
];
for (const [env, answer] of origins) {
  globalThis.fetch = async () => answer();
  let stored;
  globalThis.caches = { default: { match: async () => stored, put: async (key, response) => { stored = response; } } };
  for (const from of ['origin', 'cache']) {
    const waits = [];
    const response = await worker.fetch(new Request('https://example.org/api/v1/lists/8/details'), env, { waitUntil: (p) => waits.push(p) });
    await Promise.all(waits);
    console.log(from, response.status, stored.headers.get('cache-tag'), [...response.headers.keys()].filter((name) => name.includes('tag') && name !== 'etag').join());
    stored = new Response(stored.body, stored);
  }
}
`

// The Worker caches objects with their tags in Cloudflare's header, and missing objects with the
// tag for absence. Answers to clients have no tags.
func TestWorkerTags(t *testing.T) {
	servers.Wanted(t)
	c := siteConfig(t)
	c.Tags = "cloudflare"
	dir := t.TempDir()
	write(t, dir, "worker.mjs", renderAll(t, edge.Worker, edge.Options{Config: c, Bucket: "https://example.org"})["worker.js"])
	write(t, dir, "test.mjs", workerTags)
	out, err := exec.Command("node", filepath.Join(dir, "test.mjs")).CombinedOutput()
	lines := func(status, tags string) string {
		return "origin " + status + " " + tags + " \ncache " + status + " " + tags + " \n"
	}
	want := lines("200", "fp-list-8,fp-ranks") + lines("404", "fp-absent") + lines("200", "fp-list-8,fp-ranks") + lines("200", "null") + lines("404", "fp-absent")
	if err != nil || string(out) != want {
		t.Errorf("got %s%v\nwant %s", out, err, want)
	}
}
