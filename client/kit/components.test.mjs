// The kit's components show what the snapshot of fixtures/conformance-efp says, without a complaint.
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { complaints, requests } from './world.mjs';
import { click, render } from './render.mjs';
import { FollowersAndFollowing, FullWidthProfile, Notifications, ProfileCard } from 'ethereum-identity-kit';
import { createElement as h } from 'react';

const alice = '0x0101010101010101010101010101010101010101';
const bob = '0x0202020202020202020202020202020202020202';
const stranger = '0xfedcba9876543210fedcba9876543210fedcba98';

// The kit writes an error to the console for names that the rules of ENS refuse, and shows them as
// they are. The snapshot holds such names on purpose. Nothing else may be written there.
const odd = /^Error beautifying name: Error: (Invalid label ("(a<b>&c|sp ace|кот|a\/b|100%|under_score)"|""))/;

let shown;
afterEach(async () => {
  await shown.unmount();
  assert.deepEqual(complaints.splice(0).filter((text) => !odd.test(text)), []);
});

const show = async (viewer, ...components) => {
  requests.length = 0;
  shown = await render(viewer, ...components);
  return shown.element;
};

const texts = (element, selector) => [...element.querySelectorAll(selector)].map((e) => e.textContent.trim());
// A row is a name, the tags, and what the account is to the viewer.
const rows = (element) =>
  [...element.querySelectorAll('.profile-list-row')].map((row) =>
    [...texts(row, '.profile-list-row-name'), ...texts(row, '.cart-tags-tag'), ...texts(row, '.follower-tag')].filter(Boolean).join(' | '),
  );
// The tags to choose from, with how often each is given.
const tags = (element) => [...element.querySelectorAll('.tag-button')].map((e) => texts(e, 'p').join(' '));
const images = (element) => [...element.querySelectorAll('.efp-poaps-poap-image')].map((e) => e.alt);

for (const [how, props] of Object.entries({
  name: { addressOrName: 'Alice.eth' },
  address: { addressOrName: alice },
  list: { addressOrName: '1', list: 1 },
})) {
  test(`profile card by ${how}`, async () => {
    const card = await show(undefined, h(ProfileCard, { ...props, showPoaps: true }));
    assert.deepEqual(texts(card, '.header-left-list-number'), ['#1']);
    assert.deepEqual(texts(card, '.profile-name'), ['alice.eth']);
    assert.deepEqual(texts(card, '.profile-stats-item'), ['12Following', '18Followers']);
    assert.match(card.textContent, /π ≈ 3\.14/);
    assert.equal(card.querySelector('.profile-avatar-container img').src, 'https://img.example/a.png');
    assert.deepEqual(images(card), ['Event 177709']);
  });

  test(`profile card by ${how}, connected`, async () => {
    const options = { connectedAddress: bob, showFollowerState: true, showFollowButton: true };
    const card = await show(bob, h(ProfileCard, { ...props, ...options }));
    assert.deepEqual(texts(card, '.profile-name'), ['alice.eth']);
    // With a list, the kit asks what the profile is to that list, which is its own.
    assert.deepEqual(texts(card, '.follower-tag'), [how === 'list' ? '' : 'Follows you']);
    assert.deepEqual(texts(card, '.follow-button'), ['Following']);
    assert.match(texts(card, '.common-followers-text-container').join(), /^café\.eth, carol\.sub\.eth and others you know follow them$/);
  });
}

test('profile card of an address that the snapshot does not know', async () => {
  const card = await show(undefined, h(ProfileCard, { addressOrName: stranger, showPoaps: true }));
  assert.deepEqual(texts(card, '.profile-name'), ['0xfedc…ba98']);
  assert.deepEqual(texts(card, '.profile-stats-item'), ['0Following', '0Followers']);
  assert.deepEqual(images(card), []);
});

test('profile card of the viewer', async () => {
  const card = await show(alice, h(ProfileCard, { addressOrName: 'alice.eth', connectedAddress: alice, showFollowButton: true }));
  assert.deepEqual(texts(card, '.user-profile-edit-profile-button'), ['Edit Profile']);
});

test('full profile', async () => {
  const page = await show(undefined, h(FullWidthProfile, { addressOrName: '🦊fox.eth' }));
  const profile = page.querySelector('.full-width-profile-container');
  assert.deepEqual(texts(profile, '.user-profile-name'), ['🦊\ufe0ffox.eth']);
  assert.deepEqual(texts(profile, '.profile-stats-item'), ['1,008Following', '2Followers']);
  assert.deepEqual(texts(profile, '.more-options-list-number'), ['#8']);
});

test('full profile, connected', async () => {
  const options = { connectedAddress: bob, showFollowerState: true, showFollowButton: true, selectedList: 2 };
  const page = await show(bob, h(FullWidthProfile, { addressOrName: 'alice.eth', ...options }));
  const profile = page.querySelector('.full-width-profile-container');
  assert.deepEqual(texts(profile, '.user-profile-name'), ['alice.eth']);
  assert.deepEqual(texts(profile, '.profile-stats-item'), ['12Following', '18Followers']);
  assert.deepEqual(texts(profile, '.follower-tag'), ['Follows you']);
  assert.deepEqual(texts(profile, '.follow-button'), ['Following']);
  assert.deepEqual(images(profile), ['Event 177709']);

  // All followers that the viewer knows, not only the first ones.
  await click(shown, '.full-width-profile-container .common-followers-container');
  assert.deepEqual(texts(page, '.common-followers-modal-title'), ['Followers you know']);
  const known = texts(page, '.common-followers-modal-container .profile-list-row-name');
  assert.deepEqual(known, ['carol.sub.eth', 'café.eth', '..']);
});

test('full profile of nobody', async () => {
  const page = await show(undefined, h(FullWidthProfile, { addressOrName: 'nobody.eth' }));
  assert.deepEqual(texts(page, '.user-profile-error-text'), ["User doesn't exist"]);
});

const follows = (user, props) => h(FollowersAndFollowing, { user, defaultTab: 'following', showTagsByDefault: true, ...props });
const following = [
  'bob.eth | again | top8',
  'carol.sub.eth | efp | ens',
  'twin.eth | ZZ | gm ☀️ | zz | é',
  'a<b>&c.eth',
  '0x1111…1111 | a | a,b',
  'wrong-primary.eth | Block | MUTE',
  '日本語.eth | top8',
  '❤️heart.eth | ZZ | zz',
  'tie.eth',
  '0x0000…0000',
  'lonely.eth | spaced | <&>"',
  'sp ace.eth | efp',
];

for (const [user, useVirtualList] of [['alice.eth'], [alice], ['1'], ['alice.eth', true]]) {
  test(`following of ${user}${useVirtualList ? ', as a virtual list' : ''}`, async () => {
    const page = await show(undefined, follows(user, { useVirtualList }));
    assert.deepEqual(texts(page, '.tab-button'), ['Following', 'Followers']);
    assert.deepEqual(rows(page), following);
    assert.deepEqual(tags(page).slice(0, 6), ['top8 3', 'ZZ 2', 'efp 2', 'zz 2', 'spaced 1', '<&>" 1']);
  });

  test(`followers of ${user}${useVirtualList ? ', as a virtual list' : ''}`, async () => {
    const page = await show(undefined, follows(user, { useVirtualList, defaultTab: 'followers' }));
    assert.equal(rows(page).length, 18);
    assert.deepEqual(rows(page).slice(0, 5), ['bob.eth | friend', 'carol.sub.eth | friend | top8', 'twin.eth', 'tie.eth | first | second', '❤️selfie.eth']);
    assert.deepEqual(tags(page), ['friend 7', 'top8 3', 'zz 2', 'first 1', 'second 1']);
  });
}

test('following, connected', async () => {
  const page = await show(bob, follows('alice.eth', { connectedAddress: bob, showTagsByDefault: false }));
  const state = (name, text) => assert.ok(rows(page).includes(text ? `${name} | ${text}` : name), `${name}: ${text}, got ${rows(page)}`);
  state('carol.sub.eth', 'Follows you');
  state('❤️heart.eth', 'Blocks you');
  state('tie.eth', '');
  // The kit sends a null after the rows' addresses, and needs the states of the others all the same.
  assert.deepEqual([...new Set(texts(page, '.follow-button'))].sort(), ['Follow', 'Following', 'Muted']);
});

test('following of the viewer, with tags to edit', async () => {
  const page = await show(alice, follows('alice.eth', { connectedAddress: alice, isConnectedUserProfile: true }));
  assert.deepEqual(rows(page), following);
});

test('the entries with a tag', async () => {
  const page = await show(undefined, follows('alice.eth'));
  await click(shown, '.tag-button[name=efp]');
  assert.deepEqual(rows(page), ['carol.sub.eth | efp | ens', 'sp ace.eth | efp']);
  await click(shown, '.tab-button:last-child'); // followers
  assert.equal(rows(page).length, 18);
});

test('blocked and muted', async () => {
  const page = await show(undefined, follows('alice.eth', { showOnlyBlocked: true }));
  assert.deepEqual(texts(page, '.tab-button'), ['Blocking/Muting', 'Blocked/Muted by']);
  assert.deepEqual(rows(page), ['🦊\ufe0ffox.eth | block | top8', '0x0404…0404 | block', 'empty-list.eth | mute', 'noprimary.eth | block | mute']);
  assert.deepEqual(tags(page), ['block 3', 'mute 2']);
});

test('blocked and muted by', async () => {
  const page = await show(undefined, follows('bob.eth', { showOnlyBlocked: true, defaultTab: 'followers' }));
  assert.deepEqual(rows(page), ['0x1212…1212 | block', '❤️heart.eth | block']);
  assert.deepEqual(tags(page), ['block 2', 'mute 0']);
});

test('blocking nobody', async () => {
  const page = await show(undefined, follows('lonely.eth', { showOnlyBlocked: true }));
  assert.deepEqual(texts(page, '.empty-state-text'), ['Not blocking/muting anyone']);
});

// The package exports no component of its own for recommendations: they are below the following of
// a viewer who has no list.
test('recommended', async () => {
  const options = { connectedAddress: stranger, isConnectedUserProfile: true, showRecommendations: true };
  const page = await show(stranger, follows(stranger, options));
  assert.deepEqual(texts(page, '.empty-state-text'), ["You don't follow anyone yet!"]);
  const names = texts(page, '.recommended-container .profile-list-row-name');
  assert.deepEqual(names.slice(0, 4), ['bob.eth', 'recommended.eth', '0x0000…01f4', '❤️selfie.eth']);
  assert.equal(names.length, 19);
  const headers = [...page.querySelectorAll('.profile-list-row-header-image')].map((image) => image.src);
  assert.deepEqual(headers.slice(0, 2), ['https://img.example/bh.png', 'https://img.example/rh.png']);
});

// The kit groups what happened by how long ago it was, then by what it was.
test('notifications', async () => {
  const page = await show(undefined, h(Notifications, { addressOrName: 'bob.eth' }));
  assert.deepEqual(texts(page, '.notification-item-description'), [
    '🦊\ufe0ffox.eth and a<b>&c.eth followed you',
    'alice.eth untagged you with top8',
    '0x1111…1111 tagged you with <img src=x onerror=alert(1)>',
    '❤️heart.eth blocked you',
    '❤️heart.eth unblocked you', // one operation, which the kit takes for both
    '❤️selfie.eth unfollowed you',
  ]);
  assert.equal(page.querySelector('[onerror]'), null); // a text, not an element
  assert.deepEqual(texts(page, '.notifications-badge'), ['7']);
  await click(shown, '.notifications-bell');
  assert.deepEqual(texts(page, '.notifications-badge'), []); // seen
});

for (const user of [stranger, 'nobody.eth']) {
  test(`notifications of ${user}`, async () => {
    const page = await show(undefined, h(Notifications, { addressOrName: user }));
    assert.match(page.textContent, /No notifications/);
    assert.deepEqual(texts(page, '.notifications-badge'), []);
  });
}
