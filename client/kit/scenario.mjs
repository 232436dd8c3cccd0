// Writes what the page of a profile asks of the service when somebody is connected: the profile and
// the first 20 that it follows. See bench/api/README.md.
import { busy, complaints, requests } from './world.mjs';
import { render } from './render.mjs';
import { FollowersAndFollowing, FullWidthProfile } from 'ethereum-identity-kit';
import { createElement as h } from 'react';

const viewer = '0x0202020202020202020202020202020202020202';
const user = '0x0808080808080808080808080808080808080808';
const userName = '🦊fox.eth';
const options = { connectedAddress: viewer, selectedList: 2, showFollowerState: true, showFollowButton: true };

// What rows ask depends on whether the viewer's list is known before them. It always is, here.
const { fetch } = globalThis;
globalThis.fetch = async (url, init) => {
  if (/\/(following|followers)\?/.test(url)) {
    for (let quiet = 0; quiet < 5; quiet = busy() ? 0 : quiet + 1) {
      await new Promise((done) => setTimeout(done, 10));
    }
  }
  return fetch(url, init);
};

const shown = await render(
  viewer,
  h(FullWidthProfile, { ...options, addressOrName: userName }),
  h(FollowersAndFollowing, { connectedAddress: viewer, user: userName, defaultTab: 'following' }),
);
await shown.unmount();

const errors = complaints.filter((text) => !text.startsWith('Error beautifying name'));
if (errors.length) {
  throw new Error(errors.join('\n'));
}

// The kit sends a null after the addresses, and batches of nobody before there are rows. Neither is in the benchmark.
const addresses = (body) => JSON.parse(body).filter(Boolean);
const asked = requests.filter(({ body }) => !body || addresses(body).length);
const batch = addresses(asked.find(({ body }) => body).body);
const placeholders = [
  [userName, '{userName}'],
  [user, '{user}'],
  [viewer, '{viewer}'],
  ['/lists/2/', '/lists/{viewerList}/'],
  ...batch.map((address, i) => [address, `{row${i + 1}}`]),
];

const lines = asked.map(({ method, path, body }) => {
  const fill = (text) => placeholders.reduce((all, [value, name]) => all.replaceAll(value, name), text);
  const request = { step: 1, method, path: fill(path), ...(body && { body: fill(JSON.stringify(batch)) }) };
  if (/\{(user|viewerList)\}/.test(request.path)) {
    request.step = 2;
  }
  if (/\{row/.test(request.path + request.body)) {
    request.step = 3;
  }
  return JSON.stringify(request);
});
// Two parts of the page that want the same share a request, unless the first has its answer before the second asks.
const different = [...new Set(lines)].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
process.stdout.write(different.join('\n') + '\n');
