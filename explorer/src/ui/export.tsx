// A list as a file: all of its accounts up to a bound, in the order and with the filters of the view.

import { useEffect, useRef, useState } from 'preact/hooks';
import { csv, fileName, json, mostExported, pages } from '../data/export';
import { rowObjects } from '../data/objects';
import type { Kind, Related, Relation, Subject } from '../data/people';
import { base, site } from '../data/site';
import { exportTexts as words, shareTexts } from '../texts/profile';
import { gap, plain, type Text } from '../text';
import { number } from '../texts/first';
import { save } from './download';
import { objectLink } from './links';
import { useLoad } from './load';

type Format = 'csv' | 'json';

interface Props {
  subject: Subject & { name?: string };
  kind: Kind;
  relation: Relation;
}

export function Export({ subject, kind, relation }: Props) {
  const [said, say] = useState<Text | ''>('');
  const [work, setWork] = useState<AbortController>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  const objects = useLoad(() => rowObjects(subject, kind, relation.total), [subject.address, subject.list, kind, relation.total]);
  const whose = { name: subject.isList ? '' : (subject.name ?? ''), address: subject.isList ? `list-${subject.list}` : subject.address };

  const write = async (format: Format, stop: AbortSignal) => {
    const rows: Related[] = [];
    const { found } = relation;
    say(words.progress(0, found));
    for await (const page of pages(relation.page, stop)) {
      rows.push(...page);
      say(words.progress(rows.length, found));
    }
    const isCut = rows.length >= mostExported && found !== rows.length;
    const parts = format === 'csv' ? csv(rows) : json({ site: base, as_of: (await site.root()).as_of, of: whose.address, kind, cut: isCut }, rows);
    save(new Blob([...parts], { type: format === 'csv' ? 'text/csv;charset=utf-8' : 'application/json' }), fileName(kind, whose, format));
    say(isCut ? words.cut(number(rows.length)) : words.done(rows.length));
  };
  const begin = async (format: Format) => {
    const abort = new AbortController();
    running.current = abort;
    setWork(abort);
    try {
      await write(format, abort.signal);
    } catch (error) {
      say(abort.signal.aborted ? words.cancelled : words.failed(plain((error as Error).message)));
    }
    setWork(undefined);
  };
  return (
    <div class="card stack tight">
      <p class="quiet small">
        {words.about(number(mostExported))}
        {gap}
        {words.aboutCSV}
      </p>
      <p class="row">
        {(['csv', 'json'] as const).map((format) => (
          <button key={format} type="button" disabled={!!work} onClick={() => void begin(format)}>
            {words[format]}
          </button>
        ))}
        {work && (
          <button type="button" class="plain" onClick={() => work.abort()}>
            {words.cancel}
          </button>
        )}
        <span role="status" class="small">
          {said}
        </span>
      </p>
      {objects.state === 'done' && objects.value.keys.length > 0 && (
        <p class="row small">
          <span class="quiet">{shareTexts.asJSON}</span>
          {objects.value.keys.map((key) => (
            <a key={key} class="chip" href={objectLink(base, key)}>
              <bdi>{plain(key.replace(/^(.*\/)?([^/]*\/)/, '$2'))}</bdi>
            </a>
          ))}
          {objects.value.more > 0 && <span class="quiet">{words.moreObjects(objects.value.more)}</span>}
        </p>
      )}
    </div>
  );
}
