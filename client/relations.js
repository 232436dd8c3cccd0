// How accounts stand to each other, and small answers that few pages need. followpress.js loads this module on first use.

const limit = Infinity;

const state = async (r, token, address, { heldBy, shownState }) => shownState((await heldBy(r, token)).find(([held]) => held === address)?.[1]);

const suggestion = ([address, name, avatar, header, kind]) =>
  ({ name: name || null, address, avatar: avatar || null, header: header || null, class: kind });

const suggestionDetails = ([address, name, avatar, , , records, followers, following, ranks], counts) => ({
  address,
  ens: { name, avatar, records },
  stats: { followers_count: followers, following_count: following },
  ranks: counts(ranks, ['mutuals', 'followers', 'following', 'top8', 'blocks'], '_rank'),
});

async function recommended(r, entry, { counts, heldBy, table, take }) {
  const { offset, limit } = r.q;
  const node = await r.node();
  const held = new Map(await heldBy(r, node.token));
  const rows = await take(table(r, 'recommended'), offset + limit, ([address]) => address !== node.address && !held.has(address));
  return { recommended: rows.slice(offset).map((row) => entry(row, counts)) };
}

/**
 * answers has the answers of routes, by the names of the routes. tools are functions of followpress.js.
 */
export const answers = {
  allFollowingAddresses: async (r, { heldBy }) => (await heldBy(r, await r.token())).map(([address]) => address),
  'list-records': async (r, { recordsOf }) => ({ records: await recordsOf(r, await r.token()) }),
  // Asked for without tags: with them it is a file.
  records: async (r, { recordsOf }) => ({ records: (await recordsOf(r, r.subject)).map(({ tags, ...rest }) => rest) }),
  'primary-list': async (r) => ({ primary_list: (await r.part('lists')).primary_list }),

  async ens(r, { profile }) {
    const account = await r.part('account');
    return { ens: profile(account) ?? { name: null, address: account.address, avatar: null, records: null, updated_at: null } };
  },

  async exportState(r, { follow, heldBy, record }) {
    const held = await heldBy(r, r.subject);
    return { following: held.filter(([, tags]) => follow(tags)).map(([address, tags]) => record({ address, tags })) };
  },

  async 'simple-profile'(r, { profileURL }) {
    const [{ address, ens }, stats] = await Promise.all([r.part('account'), r.part('stats')]);
    return { address, display_name: ens.name || address, avatar: ens.avatar, ...stats, url: profileURL(r, address) };
  },

  async followerState(r, tools) {
    const [address, follower] = await Promise.all([
      r.isList ? r.node().then((node) => node.address) : tools.addressOf(r, r.subject),
      r.user(r.other),
    ]);
    const about = r.isList
      ? { token_id: r.subject, address: follower.address }
      : { addressUser: address, addressFollower: follower.address };
    return { ...about, state: await state(r, follower.token, address, tools) };
  },

  async buttonState(r, tools) {
    const [token, address] = await Promise.all([r.token(), tools.addressOf(r, r.other)]);
    return { token_id: token || null, address, state: await state(r, token, address, tools) };
  },

  recommended: (r, tools) => recommended(r, suggestion, tools),
  'recommended/details': (r, tools) => recommended(r, suggestionDetails, tools),

  async relationship(r, { addressOf, heldBy, stateOf }) {
    const [user, other] = await Promise.all([r.node(), r.user(r.other)]);
    const [source, target] = await Promise.all([user, other].map(async ({ address }, i) => address || addressOf(r, [r.subject, r.other][i])));
    const towards = async (token, address) => stateOf((await heldBy(r, token)).find(([held]) => held === address)?.[1]);
    const [by, of] = await Promise.all([towards(user.token, target), towards(other.token, source)]);
    const state = {};
    for (const [name, passive, bit] of [['is_following', 'is_followed_by', 1], ['is_blocked', 'is_blocked_by', 2], ['is_muted', 'is_muted_by', 4]]) {
      state[name] = !!(by & bit);
      state[passive] = !!(of & bit);
    }
    return { source, target, state };
  },

  async relationships(r, { heldBy, rowsOf, followerRows, utf8 }) {
    const { q } = r;
    const tag = utf8(q.tag);
    const node = await r.node();
    let all;
    if (/^in/.test(q.direction)) {
      all = await rowsOf(r, followerRows(r, node), { sort: '', offset: 0, limit }, ({ tags }) => tags.includes(tag), false);
      all.sort((a, b) => a.token.length - b.token.length || (a.token < b.token ? -1 : 1));
    } else {
      all = (await heldBy(r, node.token)).map(([address, tags]) => ({ address, tags })).filter(({ tags }) => tags.includes(tag));
    }
    return { relationships: all.slice(q.offset, q.offset + q.limit).map(({ address, tags }) => ({ address, tags })) };
  },

  // The answer leads to a URL, as server/internal/answer/profile/profile.go has it.
  async 'ens/avatar'(r, { Problem, utf8Bytes }) {
    const { avatar } = (await r.part('account')).ens;
    if (!/^https?:\/\/[^/?#]/i.test(avatar)) {
      throw new Problem('no-avatar');
    }
    return Array.from(utf8Bytes(avatar), (byte) => {
      const c = String.fromCharCode(byte);
      return /[!-~]/.test(c) && !/["<>\\^`{|}]/.test(c) ? c : '%' + byte.toString(16).toUpperCase().padStart(2, '0');
    }).join('');
  },

  async commonFollowers(r, { heldBy, rowsOf, followerRows, follow, follows }) {
    const node = await r.node();
    const leader = r.q.leader === undefined ? node : await r.user(r.q.leader);
    const held = new Map(await heldBy(r, node.token));
    const common = (row) => follows(row) && held.has(row.address) && follow(held.get(row.address));
    const rows = held.size ? await rowsOf(r, followerRows(r, leader), { sort: 'followers', offset: 0, limit }, common, false) : [];
    const rank = (row) => row.mutualsRank || limit;
    rows.sort((a, b) => (rank(a) === rank(b) ? 0 : rank(a) - rank(b)) || (a.address < b.address ? -1 : 1));
    const results = rows.slice(r.q.offset, r.q.offset + r.q.limit).map(({ address, name, avatar, header, mutualsRank }) =>
      ({ address, name, avatar, header, mutuals_rank: String(mutualsRank) }));
    return { results, length: rows.length };
  },

  async buttonStateBatch(r, { addressOf, bytesOf, decode, heldBy, shownState, Problem, utf8Bytes }) {
    let users;
    try {
      users = JSON.parse(decode(r.body));
    } catch {
      // answered below
    }
    if (!Array.isArray(users) || !users.length || users.length > 1000 || !users.every((user) => user === null || typeof user === 'string')) {
      throw new Problem('bad-batch');
    }
    const tags = new Map(await heldBy(r, r.subject));
    return Promise.all(users.map(async (user) => {
      try {
        if (user === null) {
          throw new Problem('no-such-name');
        }
        const address = await addressOf(r, bytesOf(user));
        return { token_id: r.subject, address, state: shownState(tags.get(address)) };
      } catch (error) {
        if (!(error instanceof Problem)) {
          throw error;
        }
        // Half of a surrogate pair becomes U+FFFD, as on the server.
        return { token_id: r.subject, address: user && decode(utf8Bytes(user)), state: null, error: 'ENS name not valid or does not exist' };
      }
    }));
  },
};
