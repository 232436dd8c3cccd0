// What objects are checked with, for followpress.js, which loads this module when it is given keys: the root by its
// signed note, the manifest by the root, and every object by the manifest. site/note, site/shards and storage/checked
// do the same in Go. See docs/client.md.

const noteKey = '_site.note';
const fail = (key, code = 'altered', why = '') => {
  throw Object.assign(new Error(key + ': ' + code + why), { key, code });
};
const bytesOf = (text) => new TextEncoder().encode(text);
const textOf = (bytes) => new TextDecoder().decode(bytes);
const parsed = (bytes) => JSON.parse(textOf(bytes));
const hex = (bytes) => Array.from(new Uint8Array(bytes), (byte) => (byte + 256).toString(16).slice(1)).join('');
const digestOf = async (bytes) => hex(await crypto.subtle.digest('SHA-256', bytes));
const right = async (bytes, digest) => (await digestOf(bytes)) === digest && bytes;
const decoded = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));

// The newest note of each key that was seen.
let seen = {};
try {
  seen = localStorage;
} catch {
  // there is none, or the page may not store anything
}

// body reads at most that many bytes, since who sends a body may send it without end. It is undefined if it is absent.
async function body(key, sent, most = 4 << 20) {
  const response = await sent;
  if (/40[34]/.test(response.status)) {
    return;
  }
  if (!response.ok) {
    throw new Error(response.status);
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
  const [, name, id, base64] = /(\S+?)\+(.{8})\+(\S+)/.exec(text);
  return { name, id, key: await crypto.subtle.importKey('raw', decoded(base64).slice(1), 'Ed25519', false, ['verify']) };
}

// placeOf is where the newest note of a key is kept.
const placeOf = ({ name, id }) => `followpress ${name}+${id}`;

// unpacked is the text of a part of the manifest, as bytes.
const unpacked = (bytes) => body('', new Response(new Response(bytes).body.pipeThrough(new DecompressionStream('gzip'))));

// patched is a shard as a delta has changed it, as bytes. Both write JSON as JSON.stringify does, and sort by UTF-8.
function patched({ shard, objects }, { shards }) {
  const { gone, objects: put } = shards.find((patch) => patch.shard === shard);
  const now = new Map([...objects, ...put].map((object) => [hex(bytesOf(object.key)), object]));
  gone.forEach((key) => now.delete(hex(bytesOf(key))));
  return bytesOf(JSON.stringify({ shard, objects: [...now].sort().map(([, object]) => object) }));
}

/**
 * proof returns check(key, url, init, sent), which returns a response with a body that was checked, or with 404, or
 * throws an error with a code. sent becomes the response: what it is checked by is read at the same time.
 */
export function proof(base, fetch, timeout, { keys, refreshedKeys, allowRollback, verified, checked }) {
  const kept = new Map(); // what shards of the manifest list
  let known;
  let refreshers;
  let live;
  let cache; // of requests; those at the same time may take each other's

  // Others may wait for the same part of the manifest, so none of them ends its fetch.
  const get = (key) => body(key, fetch(base + key, { cache, signal: AbortSignal.timeout(timeout) }));

  // parts are the texts of notes, each with its signatures after it.
  const parts = async (key) => textOf(await get(key)).split('\n\n');

  const imported = (texts) => Promise.all(texts.map(keyOf)).catch(() => fail('keys', 'unsupported'));

  // signers are the keys, of those that are known, that have signed a text.
  async function signers(from, text, signatures) {
    const by = [];
    try {
      for (const [, base64] of signatures.matchAll(/ (\S+)$/gm)) {
        const signature = decoded(base64);
        const one = from.find(({ id }) => id === hex(signature.slice(0, 4)));
        if (one) {
          (await crypto.subtle.verify('Ed25519', one.key, signature.slice(4), bytesOf(text + '\n'))) ? by.push(one) : fail();
        }
      }
    } catch {
      fail(noteKey);
    }
    return by;
  }

  // note checks the text of a note: a key that is known and has the name of the site must have signed it.
  async function note(text, signatures) {
    known ??= await imported(keys);
    const [kind, origin, counter, asOf, digest] = text.split('\n');
    const by = await signers(known, text, signatures);
    if (kind !== 'followpress site 1' || !by.some(({ name }) => name === origin)) {
      fail(noteKey, 'unsigned');
    }
    // Else who stole a key could use up all counters.
    return counter * 1000 > Date.now() + 864e5 ? fail(noteKey, 'ahead') : { origin, counter: +counter, asOf, digest, keys: by.map(placeOf) };
  }

  // announced are the notes of what publishes announce, of those that somebody who is known has signed.
  async function announced() {
    const all = await parts('_next/' + noteKey);
    return (await Promise.all(all.slice(0, 16).map((text, n) => note(text, all[n + 1]).catch(() => [])))).flat();
  }

  // openRoot checks the root, and returns its bytes.
  async function openRoot(root = get('_site')) {
    let [by, bytes] = await Promise.all([parts(noteKey).then(([text, signatures]) => text && note(text, signatures)), root]);
    if (!bytes) {
      return;
    }
    const digest = await digestOf(bytes);
    if (by?.digest !== digest) {
      const next = await announced();
      by = next.find((at) => at.digest === digest && !(at.counter <= by?.counter)) ??
        fail('_site', next.length ? 'between' : by ? undefined : 'unsigned',
          !by && !next.length && parsed(bytes).live ? ': this address answers from live, which nobody signs: ask the bucket' : '');
    }
    const { keys: signers, ...is } = by;
    for (const key of known.filter(({ name }) => name === by.origin)) {
      const last = JSON.parse(seen[placeOf(key)] ?? '{}');
      // With the counter of another root it is older too.
      if (!allowRollback && (by.counter < last.counter + (digest !== last.digest) || new Date(by.asOf) < new Date(last.asOf))) {
        fail('_site', 'older');
      }
    }
    try {
      signers.forEach((place) => (seen[place] = JSON.stringify(is)));
    } catch {
      // it is full
    }
    live = { ...is, dir: '', root: parsed(bytes) };
    verified?.(live);
    return bytes;
  }

  // next is a root that a publish has announced, or the live one if that is not before it.
  async function next(by) {
    const dir = `_next/${by.counter}/`;
    const bytes = by.counter > live.counter && (await get(dir + '_site'));
    return bytes && (await right(bytes, by.digest)) ? { ...by, dir, root: parsed(bytes) } : live;
  }

  // objects are those that a shard lists. All that it takes is read at once.
  async function objects({ dir, root }, name) {
    const index = name.slice(0, -2); // '' if there are none
    const delta = 'delta/' + name.replace(/(?<=..).|.$/g, '0');
    const [shard, above, change] = await Promise.all([name, index, delta].map(async (key) =>
      key && ((dir && (await get(`${dir}_manifest/${key}`))) || get('_manifest/' + key))));
    try {
      const { manifest } = above ? parsed(await right(await unpacked(above), root.manifest[index])) : root;
      const put = await unpacked(shard);
      const now = (await right(put, manifest[name])) || (await right(patched(parsed(put), parsed(await unpacked(change))), manifest[name]));
      return parsed(now).objects;
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
    return (await shard).find((object) => object.key === key) ?? {};
  }

  // isRefreshed says whether a refresh has put a body in place of one that is listed, as a signed entry says.
  async function isRefreshed(key, digest, listed) {
    refreshers ??= await imported(refreshedKeys);
    for (const at of [key.replace(/.*\/lists\/(.+)\/(.+)/, '_refresh/$2/$1'), '_refresh/copies/' + (await digestOf(bytesOf(key)))]) {
      try {
        const all = textOf(await get(at));
        const entry = all.slice(0, all.lastIndexOf(',"note":')) + '}';
        const [text, signatures] = JSON.parse(all).note.split('\n\n');
        const [kind, of, time, sha256] = text.split('\n');
        if (kind === 'followpress refresh 1' && of === at && new Date(time) < Date.now() + 864e5 && sha256 === (await digestOf(bytesOf(entry))) &&
          (await signers(refreshers, text, signatures)).length &&
          JSON.parse(entry).stored.some((put) => put.sha256 === digest && listed.includes(put.from_sha256))) {
          return true;
        }
      } catch {
        // nobody has signed it
      }
    }
  }

  // object is the body of an object, which is right if the manifest of one of the roots says so. What no manifest lists
  // is absent, whatever the bucket has.
  async function object(key, sent, roots, last) {
    const all = await Promise.all(roots.map((at) => listed(at, key).catch((error) => error)));
    const entries = all.filter((entry) => !entry.message);
    if (!entries.length) {
      throw all[0];
    }
    const present = entries.filter((entry) => entry.key);
    if (!present.length) {
      return;
    }
    const refreshed = refreshedKeys && /\/(account|badges|details)$/.test(key);
    const bytes = await body(key, sent, Math.max(refreshed << 20, ...present.map(({ size }) => size)));
    const digest = bytes && (await digestOf(bytes));
    const right = present.map(({ sha256 }) => sha256);
    if (bytes && (right.includes(digest) || (refreshed && (await isRefreshed(key, digest, right))))) {
      return bytes;
    }
    // If one of the roots has none, what there is may be left over from a site before.
    return (bytes && !last) || present.length === entries.length ? fail(key) : null;
  }

  // What does not fit is read again twice, past the caches of the browser: it may be of the last site, or of the next
  // one. The announcement of that is read before the root, since a publish removes it last.
  return async function check(key, url, init, sent) {
    cache = init.cache;
    for (let tries = 0; ; tries++) {
      try {
        let bytes;
        if (key === '_site') {
          bytes = await openRoot(body(key, sent));
        } else {
          const all = tries ? await announced() : [];
          if (tries || !live) {
            await openRoot();
          }
          bytes = await object(key, sent, [live, ...(await Promise.all(all.map(next)))], tries > 1);
        }
        checked?.(key);
        return new Response(bytes, { status: bytes ? 200 : 404 });
      } catch (error) {
        if (!error.code || tries > 1) {
          checked?.(key, error);
          throw error;
        }
      }
      cache = 'reload';
      sent = await fetch(url, { ...init, cache });
    }
  };
}
