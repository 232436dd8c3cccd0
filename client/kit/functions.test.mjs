// Every function of the kit that asks the service, by address, name and list, connected and not.
// KIT_REFERENCE is the base URL of an API that is known to be right about the same snapshot.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { complaints, direct, requests } from './world.mjs';

const kit = { ...(await import('ethereum-identity-kit')), ...(await import('ethereum-identity-kit/utils')) };

const alice = '0x0101010101010101010101010101010101010101';
const fox = '0x0808080808080808080808080808080808080808';
const cafe = '0x0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d'; // has a list, and follows many
const lonely = '0x2121212121212121212121212121212121212121'; // has no list
const stranger = '0xfedcba9876543210fedcba9876543210fedcba98'; // unknown to the snapshot
const users = [alice, fox.toUpperCase().replace('X', 'x'), 'alice.eth', 'Alice.ETH', '🦊fox.eth', 'café.eth', lonely, stranger];
const lists = [1, 8, 21]; // the last is nobody's primary list
const batch = [alice, 'bob.eth', 'nobody.eth', stranger, '0x0404040404040404040404040404040404040404'];

/** calls are [function, its arguments, the endpoint, what the function makes of the answer]. */
const calls = [];
const whole = (answer) => answer;

// Of a user or a list: the functions take the list as a second argument.
for (const [name, endpoint, pick] of [
  ['fetchAccount', 'account'],
  ['fetchProfileDetails', 'details'],
  ['fetchProfileStats', 'stats'],
  ['fetchProfileEFPPoaps', 'badges', (answer) => answer.poaps],
  ['fetchFollowingTags', 'tags'],
  ['fetchFollowerTags', 'taggedAs'],
]) {
  for (const user of users) {
    calls.push([name, [user], `users/${user}/${endpoint}`, pick]);
  }
  for (const list of lists) {
    calls.push([name, ['', list], `lists/${list}/${endpoint}`, pick]);
  }
}
for (const [name, endpoint, query, pick] of [
  ['fetchProfileDetails', 'details', 'cache=fresh'],
  ['fetchProfileStats', 'stats', 'live=true&cache=fresh'],
  ['fetchProfileEFPPoaps', 'badges', 'cache=fresh', (answer) => answer.poaps],
  ['fetchFollowingTags', 'tags', 'cache=fresh'],
]) {
  calls.push([name, ['alice.eth', undefined, true], `users/alice.eth/${endpoint}?${query}`, pick]);
  calls.push([name, ['', 8, true], `lists/8/${endpoint}?${query}`, pick]);
}
for (const user of users) {
  calls.push(['fetchProfileLists', [user], `users/${user}/lists`]);
  calls.push(['fetchProfileLists', [user, true], `users/${user}/lists?cache=fresh`]);
}
for (const user of [...users, 'bob.eth']) {
  for (const interval of ['hour', 'day', 'week', 'month', 'all', undefined]) {
    calls.push(['fetchNotifications', [user, interval], `users/${user}/notifications?limit=1000&interval=${interval}`]);
  }
}

// Pages: the second must not be the first again.
for (const [name, member, found, all] of [
  ['fetchProfileFollowing', 'following', 'searchFollowing', 'allFollowing'],
  ['fetchProfileFollowers', 'followers', 'searchFollowers', 'allFollowers'],
]) {
  const page = (args, endpoint) => {
    const pick = (answer) => ({ [member]: answer[member], nextPageParam: args.pageParam + 1 });
    calls.push([name, [args], endpoint, pick]);
  };
  const subjects = [...users.map((user) => [{ addressOrName: user }, `users/${user}`]), ...lists.map((list) => [{ list }, `lists/${list}`])];
  for (const [who, path] of subjects) {
    for (const pageParam of [0, 1, 51]) {
      const offset = pageParam ? `&offset=${20 * pageParam}` : '';
      page({ ...who, limit: 20, pageParam, tags: [], sort: 'follower count' }, `${path}/${member}?limit=20${offset}&tags=&sort=followers`);
    }
    page({ ...who, limit: 5, pageParam: 0, sort: 'latest first' }, `${path}/${member}?limit=5&sort=latest`);
    page({ ...who, limit: 5, pageParam: 1, sort: 'earliest first' }, `${path}/${member}?limit=5&offset=5&sort=earliest`);
    page({ ...who, limit: 20, pageParam: 0, tags: ['top8', 'zz'] }, `${path}/${member}?limit=20&tags=top8,zz`);
    page({ ...who, limit: 20, pageParam: 0, tags: ['block', 'mute'], allResults: true }, `${path}/${all}?limit=20&tags=block,mute`);
    page({ ...who, limit: 20, pageParam: 0, search: 'fox' }, `${path}/${found}?limit=20&term=fox`);
    page({ ...who, limit: 3, pageParam: 1, search: 'fox' }, `${path}/${found}?limit=3&offset=3&term=fox`);
  }
}
calls.push([
  'fetchProfileFollowing',
  [{ addressOrName: 'alice.eth', limit: 20, pageParam: 0, fresh: true }],
  'users/alice.eth/following?limit=20&cache=fresh',
  (answer) => ({ following: answer.following, nextPageParam: 1 }),
]);

// Connected.
for (const viewer of [alice, cafe, lonely, stranger]) {
  for (const leader of [...users, 'carol.sub.eth']) {
    calls.push(['fetchFollowersYouKnow', [viewer, leader], `users/${viewer}/commonFollowers?leader=${leader}`]);
    for (const pageParam of [0, 1]) {
      const args = { connectedAddress: viewer, lookupAddressOrName: leader, limit: 3, pageParam };
      const pick = ({ results }) => ({ followersYouKnow: results, nextPageParam: pageParam + 1 });
      calls.push(['fetchAllFollowersYouKnow', [args], `users/${viewer}/commonFollowers?leader=${leader}&limit=3${pageParam ? '&offset=3' : ''}`, pick]);
    }
    const state = { lookupAddressOrName: leader, connectedAddress: viewer, type: 'follower' };
    calls.push(['fetchFollowState', [state], `users/${viewer}/${leader}/followerState`]);
  }
}
for (const list of lists) {
  for (const user of users) {
    const state = { lookupAddressOrName: user, connectedAddress: alice, list };
    calls.push(['fetchFollowState', [{ ...state, type: 'follower' }], `lists/${list}/${user}/followerState`]);
    calls.push(['fetchFollowState', [{ ...state, type: 'following' }], `lists/${list}/${user}/buttonState`]);
    calls.push(['fetchFollowState', [{ ...state, type: 'following', fresh: true }], `lists/${list}/${user}/buttonState?cache=fresh`]);
  }
  calls.push(['fetchBatchFollowState', [{ list, lookupAddressesOrNames: batch }], `lists/${list}/buttonStateBatch`]);
}

const recommended = (answer) => answer.recommended;
const discovered = (answer) => answer.latestFollows;
for (const page of [0, 1, 2]) {
  const query = `recommended?limit=8&offset=${8 * page}`;
  for (const user of users) {
    calls.push(['fetchRecommended', ['recommended', user, undefined, 8, page], `users/${user}/${query}`, recommended]);
  }
  for (const list of lists) {
    calls.push(['fetchRecommended', ['recommended', alice, list, 8, page], `lists/${list}/${query}`, recommended]);
  }
  calls.push(['fetchRecommended', ['discover', alice, undefined, 8, page], `discover?limit=8&offset=${8 * page}`, discovered]);
}

for (const [name, args, endpoint, pick = whole] of calls) {
  test(`${name} ${JSON.stringify(args)}`, async () => {
    requests.length = complaints.length = 0;
    const got = await kit[name](...args);
    assert.deepEqual(requests.map((request) => sorted(request.path)), [sorted('/' + endpoint)]);
    const { method, body } = requests[0];
    const answer = await reference(endpoint, { method, body });
    assert.deepEqual(got, pick(answer));
    assert.deepEqual(complaints, []);
  });
}

/** sorted is a path with its parameters in order. */
function sorted(path) {
  const [endpoint, query = ''] = path.split('?');
  return [endpoint, ...query.split('&').sort()].join(' ');
}

async function reference(endpoint, init) {
  const response = await direct(`${process.env.KIT_REFERENCE}/${endpoint}`, init);
  assert.equal(response.status, 200, endpoint);
  return response.json();
}

test('what the snapshot says', async () => {
  assert.deepEqual(await kit.fetchProfileStats('alice.eth'), { followers_count: 18, following_count: 12 });
  assert.deepEqual(await kit.fetchProfileLists('alice.eth'), { primary_list: '1', lists: ['1', '5', '11'] });
  const { address, primary_list: list, ens } = await kit.fetchProfileDetails('🦊fox.eth');
  assert.deepEqual({ address, list, name: ens.name }, { address: fox, list: '8', name: '🦊fox.eth' });
  assert.equal((await kit.fetchProfileDetails('', 1)).address, alice);
  assert.equal((await kit.fetchAccount(stranger)).address, stranger);
  assert.equal((await kit.fetchProfileEFPPoaps('alice.eth')).filter((poap) => poap.collection).length, 1);
  const { state } = await kit.fetchFollowState({ lookupAddressOrName: 'bob.eth', list: 1, type: 'following' });
  assert.deepEqual(state, { follow: true, block: false, mute: false });
  const { tagCounts } = await kit.fetchFollowingTags('alice.eth');
  assert.deepEqual(tagCounts.slice(0, 2), [{ tag: 'block', count: 3 }, { tag: 'top8', count: 3 }]);
  const first = await kit.fetchProfileFollowing({ addressOrName: 'bob.eth', limit: 1, pageParam: 0, sort: 'follower count' });
  assert.deepEqual(first.following.map((entry) => entry.address), [alice]);
  const { summary } = await kit.fetchNotifications('bob.eth', 'week');
  assert.deepEqual([summary.total, summary.total_follows, summary.total_unfollows, summary.total_tags, summary.total_untags], [6, 2, 1, 2, 1]);
  const [best] = await kit.fetchRecommended('recommended', stranger, undefined, 1, 0);
  assert.deepEqual([best.name, best.class], ['bob.eth', 'A']);
});

// What is not there is JSON without what was asked for, or null: that is how the kit tells.
test('softly', async () => {
  complaints.length = 0;
  for (const name of ['fetchAccount', 'fetchProfileDetails']) {
    assert.equal((await kit[name]('nobody.eth')).address, undefined, name);
    assert.equal((await kit[name]('', 424242)).address, undefined, name);
  }
  assert.equal((await kit.fetchProfileStats('nobody.eth')).followers_count, undefined);
  assert.equal((await kit.fetchFollowersYouKnow(alice, 'nobody.eth')).results, undefined);
  assert.equal((await kit.fetchFollowingTags('nobody.eth')).tags, undefined);
  assert.equal((await kit.fetchFollowerTags('nobody.eth')).tags, undefined);
  assert.equal((await kit.fetchProfileLists('nobody.eth')).lists, undefined);
  assert.equal(await kit.fetchRecommended('recommended', 'nobody.eth'), undefined);
  assert.deepEqual(await kit.fetchProfileEFPPoaps('nobody.eth'), []);
  const nobody = { addressOrName: 'nobody.eth', limit: 20, pageParam: 0 };
  assert.deepEqual((await kit.fetchProfileFollowing(nobody)).following, []);
  assert.deepEqual((await kit.fetchProfileFollowers(nobody)).followers, []);
  const unknown = { lookupAddressOrName: 'nobody.eth', connectedAddress: alice, list: 1 };
  assert.equal((await kit.fetchFollowState({ ...unknown, type: 'following' })).state, undefined);

  // Nobody is connected.
  requests.length = 0;
  assert.equal(await kit.fetchFollowState({ lookupAddressOrName: alice, type: 'following' }), null);
  assert.equal(await kit.fetchFollowState({ lookupAddressOrName: alice, type: 'follower' }), null);
  assert.equal(await kit.fetchBatchFollowState({ lookupAddressesOrNames: batch }), null);
  assert.equal(await kit.fetchNotifications(), null);
  assert.deepEqual(requests, []);

  assert.equal((await kit.fetchNotifications('nobody.eth', 'all')).notifications, undefined);
  assert.deepEqual(complaints, []);

  // Only this function says that something is missing.
  const none = await kit.fetchAllFollowersYouKnow({ connectedAddress: alice, lookupAddressOrName: 'nobody.eth', pageParam: 0 });
  assert.deepEqual(none.followersYouKnow, []);
  assert.match(complaints.splice(0).join(), /^Error: No data returned from API[^,]*$/);
});

test('no function is left out', () => {
  const tested = calls.map(([name]) => name);
  // These ask another service, for what is not in a snapshot.
  const others = ['fetchNameMetadata', 'fetchNameRoles'];
  const all = Object.keys(kit).filter((name) => name.startsWith('fetch'));
  assert.deepEqual(all.sort(), [...new Set([...tested, ...others])].sort());
});
