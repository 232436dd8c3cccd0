// The refresh buttons of the kit, each pressed more often than refreshes are allowed. KIT_FRESH is what the source
// of fresh profiles says of itself.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { complaints, direct, requests } from './world.mjs';
import { click, render } from './render.mjs';
import { FullWidthProfile, ProfileCard } from 'ethereum-identity-kit';
import { createElement as h } from 'react';

for (const [component, addressOrName, button, shows] of [
  [ProfileCard, 'alice.eth', '.header-refresh', { '.profile-name': 'alice.eth', '.profile-stats-item': '12Following 18Followers' }],
  [FullWidthProfile, 'bob.eth', '.more-options-refresh-button', { '.user-profile-name': 'bob.eth' }],
]) {
  test(`refresh of ${addressOrName}`, async () => {
    const shown = await render(undefined, h(component, { addressOrName }));
    const texts = (selector) => [...shown.element.querySelectorAll(selector)].map((e) => e.textContent.trim()).join(' ');
    assert.doesNotMatch(shown.element.textContent, new RegExp(process.env.KIT_FRESH));
    const fresh = `/users/${addressOrName}/details?cache=fresh`;
    for (let presses = 1; presses <= 3; presses++) {
      await click(shown, button);
      assert.equal(requests.filter(({ path }) => path === fresh).length, presses);
      assert.match(shown.element.textContent, new RegExp(process.env.KIT_FRESH), `after ${presses}`);
      for (const [selector, text] of Object.entries(shows)) {
        assert.equal(texts(selector), text, `after ${presses}`);
      }
    }
    const limited = await direct(process.env.KIT_API + fresh);
    assert.deepEqual([limited.status, limited.headers.get('x-refresh')], [200, 'limited']);
    await shown.unmount();
    assert.deepEqual(complaints, []);
  });
}
