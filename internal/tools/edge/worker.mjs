// Runs a Cloudflare Worker on this machine until standard input ends:
//
//	node worker.mjs worker.js HOST PORT
import { readFile } from 'node:fs/promises';
import { Miniflare } from 'miniflare';

const [script, host, port] = process.argv.slice(2);
const options = {
  modules: true,
  script: await readFile(script, 'utf8'),
  host,
  port: Number(port),
  compatibilityDate: '2025-07-01',
  cf: false, // or it asks Cloudflare where this machine is
};
// The runtime takes ports of its own beside ours, and another process may be faster.
async function start(tries) {
  const miniflare = new Miniflare(options);
  try {
    await miniflare.ready;
    return miniflare;
  } catch (error) {
    if (tries === 1) {
      throw error;
    }
    await miniflare.dispose().catch(() => {}); // it may not even have begun
    return start(tries - 1);
  }
}
const miniflare = await start(3);
process.on('SIGTERM', async () => {
  await miniflare.dispose();
  process.exit(0);
});
