// Runs a Cloudflare Worker on this machine until standard input ends:
//
//	node worker.mjs worker.js HOST PORT
import { readFile } from 'node:fs/promises';
import { Miniflare } from 'miniflare';

const [script, host, port] = process.argv.slice(2);
const miniflare = new Miniflare({
  modules: true,
  script: await readFile(script, 'utf8'),
  host,
  port: Number(port),
  compatibilityDate: '2025-07-01',
  cf: false, // or it asks Cloudflare where this machine is
});
await miniflare.ready;
process.on('SIGTERM', async () => {
  await miniflare.dispose();
  process.exit(0);
});
