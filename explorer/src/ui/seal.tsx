// The seal: what this browser has checked of what it shows, in one sentence.

import { useEffect, useState } from 'preact/hooks';
import { hear, standing, type Standing } from '../data/proof';
import { seal, site } from '../data/site';
import { sealTexts } from '../texts/later';
import { href } from '../router';
import { named, plain, type Text } from '../text';
import { date, number, sentences, texts } from '../texts/first';
import { useLoad } from './load';

/** A block of a chain, up to which a site was made. */
export interface Chain {
  chain_id: number;
  block: number;
  hash?: string;
}

/** The blocks that a root names. */
export const chainsOf = (root: Record<string, unknown>): readonly Chain[] => (root['inputs'] as { chains?: Chain[] } | undefined)?.chains ?? [];

/** What is known now, and again when more is. */
export function useStanding(): Standing {
  const [, draw] = useState({});
  useEffect(() => {
    draw({}); // something may have been checked since
    return hear(() => draw({}));
  }, []);
  const root = useLoad(() => site.root(), []);
  return standing(root.state === 'done' && !!root.value.live);
}

/** As of when what was signed is: its blocks, or a day if it names none. */
function asOf(): Text {
  const chains = seal.proof ? chainsOf(seal.proof.root) : [];
  return chains.length
    ? sealTexts.blocks(plain(chains.map(({ chain_id, block }) => sealTexts.block(number(block), plain(String(chain_id)))).join(', ')))
    : date(seal.proof?.asOf ?? '');
}

/** The sentence for what is known. */
export function said({ state, right, refused, by, changed }: Standing): Text {
  if (state === 'good') {
    const text = sealTexts.good(named(seal.proof?.origin ?? ''), asOf(), number(right), right);
    return sentences(text, by === 'site' && sealTexts.bySite, changed && sealTexts.changed);
  }
  return state === 'altered' ? sealTexts.altered(number(refused.length), refused.length) : sentences(sealTexts[state], changed && sealTexts.changed);
}

/** The class of the sentence. */
export const moodOf = ({ state, by, changed }: Standing): string =>
  state === 'good' ? (by === 'reader' ? 'good' : changed ? 'bad' : '') : ['altered', 'older', 'ahead', 'unsigned'].includes(state) ? 'bad' : '';

/** The sentence, which leads to the view that says more. Where nothing could be checked, there is none on each page. */
export function Seal() {
  const now = useStanding();
  return (
    <a class={`seal ${moodOf(now)}`} href={href(['proof'])}>
      {now.state === 'none' ? texts.proof : said(now)}
    </a>
  );
}
