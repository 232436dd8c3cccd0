// Run by TestProof of the package client: buckets that are right or altered, and a page that knows the keys.

import assert from 'node:assert';
import { readFileSync } from 'node:fs';
import test from 'node:test';

const { openSite } = await import(process.env.FOLLOWPRESS_CLIENT + 'followpress.js');

for (const { name, before, before_keys, base, keys, options, path, status, bodies, code, says } of JSON.parse(readFileSync(process.env.FOLLOWPRESS_PROOFS))) {
  test(name, async () => {
    if (before) {
      assert.strictEqual((await openSite(before, { keys: before_keys ?? keys, allowRollback: true }).answer('GET', path)).status, 200);
    }
    const proofs = [];
    const codes = new Set();
    const heard = { verified: (proof) => proofs.push(proof), checked: (key, error) => codes.add(error?.code ?? '') };
    const site = openSite(base, { keys, ...options, ...heard });
    const a = await site.answer('GET', path);
    assert.deepStrictEqual([a.status, a.cause?.code ?? ''], [status, code], a.cause?.stack ?? a.body);
    assert.ok(codes.has(code) && (code || codes.size === 1), [...codes].join());
    if (says) {
      assert.strictEqual(a.cause.message, says);
    }
    if (bodies) {
      assert.ok(bodies.includes(a.body), a.body);
      assert.strictEqual(proofs[0].digest.length, 64);
    }
  });
}
