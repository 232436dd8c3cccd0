// Compares the answers of the client with those that the server gives, in Node and in browsers.

/** check asks for each case, and returns how many there were and a line for each that differs. */
export async function check({ openSite, install }, base, cases) {
  const site = openSite(base);
  const service = 'https://service.example/v1';
  const uninstall = install({ base, from: [service, 'https://other.example'] });
  const failures = [];
  const differs = (c, what, got) => {
    let same = 0;
    while (same < got.length && got[same] === c.body[same]) {
      same++;
    }
    const at = Math.max(0, same - 100);
    const part = (text) => `…${text.slice(at, at + 300)}`;
    failures.push(`${c.method} ${c.path.slice(0, 200)}: ${what}: got ${part(got)}, want ${c.status} ${part(c.body)}`);
  };
  try {
    for (const c of cases) {
      const a = await site.answer(c.method, c.path, c.sent);
      if (a.status !== c.status) {
        differs(c, 'status', `${a.status} ${a.cause ?? a.body}`);
      } else if (c.status === 302) {
        if (a.location !== c.body && c.body) {
          differs(c, 'location', a.location);
        }
        continue; // the shim goes there
      } else if (c.status !== 200 && JSON.parse(a.body).status !== c.status) {
        differs(c, 'problem', a.body);
      } else if (c.body && a.body !== c.body) {
        differs(c, 'body', a.body);
      }
      const endpoint = /^\/api\/v1(\/.*)$/.exec(c.path)?.[1];
      // A URL cannot have every path that a request can have.
      if (endpoint && new URL(service + endpoint).href === service + endpoint) {
        const body = c.method === 'POST' ? c.sent : undefined;
        const response = await fetch(service + endpoint, { method: c.method, body, headers: { 'Content-Type': 'application/json' } });
        const text = await response.text();
        if (response.status !== c.status || text !== (c.method === 'HEAD' ? '' : a.body) || response.url !== service + endpoint) {
          differs(c, 'shim', `${response.status} ${text}`);
        }
      }
    }
  } finally {
    uninstall();
  }
  return { cases: cases.length, failures };
}
