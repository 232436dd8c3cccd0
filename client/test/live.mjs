// Checks what the client asks of a live site, in Node and in browsers.

/** checkLive follows an account in rounds that it asks for at control, and returns a line for each failure. */
export async function checkLive({ openSite }, base, control) {
  const failures = [];
  const same = (what, got, want) => {
    if (JSON.stringify(got) !== JSON.stringify(want)) {
      failures.push(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
    }
  };
  // The next round, after a while, without waiting for it.
  const round = (block, after = 0) => new Promise((done) => setTimeout(done, after)).then(() => fetch(`${control}round?block=${block}`, { method: 'POST' }));
  const user = '0x0000000000000000000000000000000000000b0b';
  const followers = async (site) => Number((await site.user(user).stats()).followers_count);

  const site = openSite(base);
  same('followers', await followers(site), 0);
  same('heads', site.seen()?.heads, { 8453: 100 });
  same('time', /^\d{4}-\d\d-\d\dT/.test(site.seen()?.asOf), true);

  const late = round(101, 300);
  const fresh = site.after({ 8453: 101 });
  same('followers after a block', await followers(fresh), 1);
  same('heads after a block', fresh.seen()?.heads, { 8453: 101 });
  same('what was kept', await followers(site), 0);
  const news = async (site) => (await site.user(user).notifications()).notifications.map(({ action, token_id }) => [action, token_id]);
  same('news after a block', await news(fresh), [['follow', '1']]);
  const a = await fresh.answer('GET', '/api/v1/users/nobody.eth/stats');
  same('an error', [a.status, a.heads], [404, { 8453: 101 }]);
  await late;

  const begun = Date.now();
  const waiting = site.after('8453:9999', { wait: 1 });
  const [b, c] = await Promise.all([waiting.ask('GET', `users/${user}/followers`), waiting.ask('GET', 'stats')]);
  same('a block that does not come', [b.status, c.status, b.heads, c.heads], [200, 200, { 8453: 101 }, { 8453: 101 }]);
  same('the wait', Date.now() - begun > 900, true);
  same('an unknown chain', (await site.after('1:5', { wait: 1 }).ask('GET', 'stats')).status, 503);
  same('the root', (await site.after('8453:101').root()).live, true);
  for (const wrong of ['', '8453', '8453:', 'x:1', {}, { 8453: 'x' }]) {
    try {
      site.after(wrong);
      failures.push(`after ${JSON.stringify(wrong)}: got no error, want one`);
    } catch (error) {
      same('the error', error instanceof TypeError, true);
    }
  }
  return failures;
}
