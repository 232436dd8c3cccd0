// Calls a server with the types that openapi-typescript makes of both descriptions.

import createClient from 'openapi-fetch';
import type { paths as EFP } from './efp.js';
import type { paths as Spec } from './spec.js';

function check(ok: boolean, text: string) {
  if (!ok) {
    throw new Error(text);
  }
}

/** Calls a server of the specification's API. */
export async function spec(baseUrl: string) {
  const api = createClient<Spec>({ baseUrl });
  const details = await api.GET('/api/v1/lists/{token_id}/details', { params: { path: { token_id: '4' } } });
  check(details.data?.ens.name === 'miralund.eth', 'details');
  const found = await api.GET('/api/v1/users/{user}/searchFollowing', {
    params: { path: { user: 'miralund.eth' }, query: { limit: 1, term: 'tobi' } },
  });
  check(found.data?.following[0]?.ens.name === 'tobi-okafor.eth', 'searchFollowing');
  const none = await api.GET('/api/v1/users/{user}/searchFollowing', { params: { path: { user: 'nobody.eth' } } });
  check(none.data === undefined && none.error?.status === 404, 'an unknown name');
  // @ts-expect-error: only the other API has the endpoint
  await api.GET('/api/v1/stats');
}

/** Calls a server of the whole read API. */
export async function efp(baseUrl: string) {
  const api = createClient<EFP>({ baseUrl });
  const user = { path: { user: 'miralund.eth' } };
  const account = await api.GET('/api/v1/users/{user}/account', { params: user });
  check(account.data?.ens.name === 'miralund.eth', 'account');
  const page = await api.GET('/api/v1/users/{user}/following', {
    params: { ...user, query: { limit: 2, sort: 'followers', include: ['ens', 'mutuals'] } },
  });
  check(page.data?.following.length === 2 && typeof page.data.following[0]?.is_mutual === 'boolean', 'following');
  const states = await api.POST('/api/v1/lists/{token_id}/buttonStateBatch', {
    params: { path: { token_id: '4' } },
    body: ['tobi-okafor.eth', 'nobody.eth'],
  });
  const [first, second] = states.data ?? [];
  check(first !== undefined && 'state' in first && first.state.follow, 'the state of a followed account');
  check(second !== undefined && 'error' in second, 'the state of an unknown name');
  const none = await api.GET('/api/v1/users/{user}/account', { params: { path: { user: 'nobody.eth' } } });
  check(none.data === undefined && none.error?.status === 404, 'an unknown name');
  // @ts-expect-error: a variable of the path is missing
  await api.GET('/api/v1/users/{user}/account', {});
}
