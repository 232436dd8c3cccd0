// What is done with a profile elsewhere: its link, as a text and as a QR code, other sites about the account, a picture, and
// the objects that it is made from.

import { outline } from '@followpress/qr';
import { useEffect, useRef, useState } from 'preact/hooks';
import { checksummed } from '../data/checksum';
import { fileName } from '../data/export';
import { profileObjects } from '../data/objects';
import type { Profile } from '../data/people';
import { badgeCode, cardCode, type Shared } from '../data/shared';
import { base, site } from '../data/site';
import { peopleTexts } from '../texts/accounts';
import { cardTexts, shareTexts as words } from '../texts/profile';
import { useSettings } from '../settings';
import { plain, type Text } from '../text';
import { date, texts } from '../texts/first';
import { drawCard, height, width } from './card';
import { useTheme } from './colours';
import { Address } from './copy';
import { save } from './download';
import { Icon } from './icon';
import { link, objectLink, outside } from './links';
import { useLoad } from './load';
import { called } from './person';

type QR = ReturnType<typeof outline>;

const elsewhere: [name: Text, url: string][] = [
  [words.etherscan, 'https://etherscan.io/address/'],
  [words.efp, 'https://efp.app/'],
];

function Card({ person, address, qr }: { person: Profile; address: Text; qr: QR }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const settings = useSettings();
  const theme = useTheme();
  const drawn = useLoad(async () => {
    const { as_of } = await site.root();
    if (canvas.current) {
      await drawCard(canvas.current, { person, address, qr, foot: cardTexts.foot(texts.title, date(as_of)) }, settings);
    }
  }, [person, settings, theme], false);
  const download = () => canvas.current?.toBlob((file) => file && save(file, fileName('card', person, 'png')));
  return (
    <section class="stack tight">
      <h3>{words.card}</h3>
      <canvas ref={canvas} class="portrait" width={width} height={height} role="img" aria-label={words.card} />
      <p class="row">
        <button type="button" disabled={drawn.state !== 'done'} onClick={download}>
          {drawn.state === 'loading' ? words.drawing : words.saveCard}
        </button>
        {drawn.state === 'failed' && <span class="bad small">{words.noCard}</span>}
      </p>
    </section>
  );
}

function Objects({ person }: { person: Profile }) {
  const loaded = useLoad(() => profileObjects(person), [person.address]);
  if (loaded.state !== 'done' || !loaded.value.keys.length) {
    return null;
  }
  return (
    <section class="stack tight">
      <h3>{words.asJSON}</h3>
      <p class="quiet small">{words.objects}</p>
      <p class="row small">
        {loaded.value.keys.map((key) => (
          <a key={key} class="chip" href={objectLink(base, key)}>
            {plain(key.replace(/^.*\//, ''))}
          </a>
        ))}
      </p>
    </section>
  );
}

function Codes({ has }: { has: Shared }) {
  const codes: (readonly [title: Text, copy: Text, code: string | undefined])[] = [
    [words.badge, words.copyBadge, has.page && badgeCode(has.page, words.badgeOf(plain(has.name)))],
    [words.embed, words.copyEmbed, has.embed && cardCode(has.embed, has.name)],
    [words.feed, words.copyFeed, has.feed],
  ];
  return (
    <>
      {codes.map(([title, copy, code]) =>
        code ? (
          <section key={title} class="stack tight">
            <h3>{title}</h3>
            <Address address={code} label={copy} />
          </section>
        ) : null,
      )}
    </>
  );
}

/** What is shared is the page of the account, which others can preview, or else the profile in the explorer. */
export function ShareDialog({ person, has, to, close }: { person: Profile; has: Shared | undefined; to: string; close: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => box.current?.showModal(), []);
  const address = plain(checksummed(person.address));
  const [qr] = useState(() => outline(to));
  const name = called(person);
  const send = () => void navigator.share({ title: name, url: to }).catch(() => undefined); // the reader has changed their mind
  return (
    <dialog
      ref={box}
      class="dialog"
      aria-label={peopleTexts.shareOf(name)}
      onClose={close}
      onClick={(event) => event.target === box.current && box.current?.close()}
    >
      <div class="stack">
        <div class="row between">
          <h2 class="line">
            <bdi>{name}</bdi>
          </h2>
          <button type="button" class="plain icon" aria-label={words.close} title={words.close} onClick={() => box.current?.close()}>
            <Icon name="close" />
          </button>
        </div>
        <section class="shared">
          <div class="stack tight">
            <h3>{words.link}</h3>
            <Address address={to} label={words.copyLink} />
            {'share' in navigator && (
              <p>
                <button type="button" onClick={send}>
                  {words.send}
                </button>
              </p>
            )}
            <h3>{words.elsewhere}</h3>
            <p class="row">
              {elsewhere.map(([text, url]) => (
                <a key={text} href={link(url + address)?.to} {...outside}>
                  {text}
                </a>
              ))}
            </p>
            <p class="quiet small">{words.aboutElsewhere}</p>
          </div>
          <svg class="qr" viewBox={`0 0 ${qr.size} ${qr.size}`} role="img" aria-label={words.qr(name)} shape-rendering="crispEdges">
            <rect width={qr.size} height={qr.size} fill="#fff" />
            <path d={qr.path} />
          </svg>
        </section>
        {has && <Codes has={has} />}
        <Card person={person} address={address} qr={qr} />
        <Objects person={person} />
      </div>
    </dialog>
  );
}
