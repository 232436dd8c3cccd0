// What objects are checked with, for followpress.js, which loads this module when it is given keys: the root by its
// signed note, the manifest by the root, and every object by the manifest. site/note, site/shards and storage/checked
// do the same in Go. See docs/client.md.

const fail = (key, code = 'altered') => {
  throw Object.assign(new Error(key + ': ' + code), { key, code });
};
const bytesOf = (text) => new TextEncoder().encode(text);
const textOf = (bytes) => new TextDecoder().decode(bytes);
const parsed = (bytes) => JSON.parse(textOf(bytes));
const hex = (bytes) => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('');
const digestOf = async (bytes) => hex(await crypto.subtle.digest('SHA-256', bytes));
const right = async (bytes, digest) => (await digestOf(bytes)) === digest && bytes;
const decoded = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));

// The newest note of each origin that was seen.
let seen = {};
try {
  seen = localStorage;
} catch {
  // there is none, or the page may not store anything
}

// body reads at most that many bytes, since who sends a body may send it without end. It is null if it is absent.
async function body(key, sent, most = 4 << 20) {
  const response = await sent;
  if (/40[34]/.test(response.status)) {
    return null;
  }
  if (!response.ok) {
    throw new Error('status ' + response.status);
  }
  const parts = [];
  const reader = response.body?.getReader();
  for (let part; (part = (await reader?.read())?.value); parts.push(part)) {
    if ((most -= part.length) < 0) {
      reader.cancel();
      fail(key);
    }
  }
  return new Blob(parts).arrayBuffer();
}

// keyOf reads a key, as `followpress key` prints it.
async function keyOf(text) {
  const [, name, id, base64] = /(\S+?)\+(.{8})\+(\S+)/.exec(text) ?? [];
  try {
    return { name, id, key: await crypto.subtle.importKey('raw', decoded(base64).slice(1), 'Ed25519', false, ['verify']) };
  } catch {
    return fail(text, 'unsupported');
  }
}

// unpacked is the text of a part of the manifest, as bytes.
const unpacked = (bytes) => body('', new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))));

// patched is a shard as a delta has changed it, as bytes. Both write JSON as JSON.stringify does, and sort by UTF-8.
function patched({ shard, objects }, { shards }) {
  const { gone, objects: put } = shards.find((patch) => patch.shard === shard);
  const keyOf = (key) => hex(bytesOf(key));
  const now = new Map([...objects, ...put].map((object) => [keyOf(object.key), object]));
  gone.forEach((key) => now.delete(keyOf(key)));
  return bytesOf(JSON.stringify({ shard, objects: Array.from(now).sort().map(([, object]) => object) }));
}

/**
 * proof returns check(key, url, init, sent), which returns a response with a body that was checked, or with 404, or
 * throws an error with a code. sent becomes the response: what it is checked by is read at the same time.
 */
export function proof(base, fetch, timeout, { keys, allowRollback, unsignedRefreshes, verified, checked }) {
  const kept = new Map(); // what shards of the manifest list
  let known;
  let live;
  let cache; // of requests; those at the same time may take each other's

  // Others may wait for the same part of the manifest, so none of them ends its fetch.
  const send = (key) => fetch(base + key, { cache, signal: AbortSignal.timeout(timeout) });
  const get = (key) => body(key, send(key));

  // notes reads and checks the notes that an object has, one or several; none if it is absent.
  async function notes(key) {
    const signed = await get(key);
    known ??= await Promise.all(keys.map(keyOf));
    return signed ? Promise.all(textOf(signed).split(/(?<=\n)\n(?=followpress )/).slice(0, 8).map((one) => note(key, one))) : [];
  }

  // note checks a note.
  async function note(key, signed) {
    const by = [];
    const [, text, signatures] = /^([^]*\n)\n([^]*)$/.exec(signed) ?? [];
    try {
      for (const [, name, base64] of signatures?.matchAll(/^\u2014 (\S+) (\S+)$/gm) ?? []) {
        const signature = decoded(base64);
        for (const k of known) {
          if (k.name === name && k.id === hex(signature.slice(0, 4))) {
            by.push((await crypto.subtle.verify('Ed25519', k.key, signature.slice(4), bytesOf(text))) ? name : fail());
          }
        }
      }
    } catch {
      fail(key);
    }
    const [, origin, counter, asOf, digest] = /^followpress site 1\n(\S+)\n(\d{1,15})\n(\S+)\n(\w+)\n$/.exec(text) ?? [];
    return by.includes(origin) ? { origin, counter: +counter, asOf, digest, by } : fail(key, 'unsigned');
  }

  const announced = () => notes('_next/_site.note');

  // openRoot checks the root, and returns its bytes.
  async function openRoot(sent) {
    let [[by], bytes] = await Promise.all([notes('_site.note'), body('_site', sent)]);
    if (!bytes) {
      return bytes;
    }
    const digest = await digestOf(bytes);
    if (by?.digest !== digest) {
      const next = await announced();
      by = next.find((at) => at.digest === digest && !(at.counter <= by?.counter)) ??
        fail('_site', next.length ? 'between' : by ? undefined : 'unsigned');
    }
    const name = 'followpress ' + by.origin;
    const last = JSON.parse(seen[name] ?? '{}');
    // With the counter of another root it is older too.
    if (!allowRollback && (by.counter < last.counter + (digest !== last.digest) || Date.parse(by.asOf) < Date.parse(last.asOf))) {
      fail('_site', 'older');
    }
    try {
      seen[name] = JSON.stringify(by);
    } catch {
      // it is full
    }
    live = { ...by, dir: '', root: parsed(bytes) };
    verified?.(live);
    return bytes;
  }

  // next is a root that a publish has announced; none if it is not after the live one.
  async function next(by) {
    const dir = `_next/${by.counter}/`;
    const bytes = by.counter > live.counter && (await get(dir + '_site'));
    return bytes && (await right(bytes, by.digest)) ? [{ ...by, dir, root: parsed(bytes) }] : [];
  }

  // objects are those that a shard lists, by key. All that it takes is read at once.
  async function objects({ dir, root }, name) {
    const index = name.slice(0, -2); // '' if there are none
    const delta = 'delta/' + name.slice(0, -1).slice(0, 2).padEnd(name.length, '0');
    const [shard, above, change] = await Promise.all([name, index, delta].map(async (key) =>
      key && ((dir && (await get(`${dir}_manifest/${key}`))) || get('_manifest/' + key))));
    try {
      const { manifest } = above ? parsed(await right(await unpacked(above), root.manifest[index])) : root;
      const put = await unpacked(shard);
      const now = (await right(put, manifest[name])) || (await right(patched(parsed(put), parsed(await unpacked(change))), manifest[name]));
      return new Map(parsed(now).objects.map((object) => [object.key, object]));
    } catch {
      return fail('_manifest/' + name); // or none that followpress wrote
    }
  }

  // listed is what the manifest of a root says of an object.
  async function listed(at, key) {
    const name = (await digestOf(bytesOf(key))).slice(0, at.root.manifest_digits);
    const id = at.digest + name;
    let shard = kept.get(id);
    if (!shard) {
      if (kept.size > 63) {
        kept.clear();
      }
      shard = objects(at, name);
      kept.set(id, shard);
      shard.catch(() => kept.delete(id));
    }
    return (await shard).get(key) ?? {};
  }

  // object is the body of an object, which is right if the manifest of one of the roots says so. What no manifest lists
  // is absent, whatever the bucket has.
  async function object(key, sent, roots, last) {
    const all = await Promise.all(roots.map((at) => listed(at, key).catch((error) => error)));
    const entries = all.filter((entry) => !(entry instanceof Error));
    if (!entries.length) {
      throw all[0];
    }
    const present = entries.filter((entry) => entry.key);
    if (!present.length) {
      return null;
    }
    const refreshed = unsignedRefreshes && /\/(account|badges|details)$/.test(key);
    const bytes = await body(key, sent, Math.max(refreshed << 20, ...present.map(({ size }) => size)));
    const digest = bytes && (await digestOf(bytes));
    if (bytes && (refreshed || present.some(({ sha256 }) => sha256 === digest))) {
      return bytes;
    }
    // If one of the roots has none, what there is may be left over from a site before.
    return (bytes && !last) || present.length === entries.length ? fail(key) : null;
  }

  // What does not fit is read again twice, past the caches of the browser: it may be of the last site, or of the next
  // one. The announcement of that is read before the root, since a publish removes it last.
  return async function check(key, url, init, sent) {
    for (let tries = 0; ; tries++) {
      cache = tries ? 'reload' : init.cache;
      try {
        let bytes;
        if (key === '_site') {
          bytes = await openRoot(sent);
        } else {
          const all = tries ? await announced() : [];
          if (tries || !live) {
            await openRoot(send('_site'));
          }
          bytes = await object(key, sent, [live, ...(await Promise.all(all.map(next))).flat()], tries > 1);
        }
        checked?.(key);
        return new Response(bytes, { status: bytes ? 200 : 404 });
      } catch (error) {
        if (!error.code || tries > 1) {
          checked?.(key, error);
          throw error;
        }
      }
      sent = await fetch(url, { ...init, cache: 'reload' });
    }
  };
}
