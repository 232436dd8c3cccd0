// A list: whose it is, whether it counts, and what is in it.

import { peopleTexts as words } from '../texts/accounts';
import { listOf, type ListOf } from '../data/people';
import { href, type Place } from '../router';
import { clip, gap, plain } from '../text';
import { texts } from '../texts/first';
import { Heading } from '../ui/heading';
import { Show, useLoad } from '../ui/load';
import { PersonLink } from '../ui/person';
import { Relations } from './people';

function About({ list: { owner, isPrimary } }: { list: ListOf }) {
  return (
    <div class="card about-list">
      <div>
        <p class="quiet small">{words.owner}</p>
        <PersonLink person={owner} />
      </div>
      <div>
        <p>
          <span class={isPrimary ? 'chip strong' : 'chip'}>{isPrimary ? words.primary : words.notPrimary}</span>
        </p>
        <p class="quiet small">
          {isPrimary ? words.aboutPrimary : words.aboutNotPrimary}{gap}
          {!isPrimary &&
            (owner.list ? <a href={href(['l', owner.list])}>{words.otherPrimary(plain(owner.list))}</a> : words.noPrimary)}
        </p>
      </div>
    </div>
  );
}

export function List({ place }: { place: Place }) {
  const token = place.path[1] ?? '';
  const loaded = useLoad(() => listOf(token), [token]);
  return (
    <Show loaded={loaded}>
      {(list) =>
        list ? (
          <div class="stack">
            <Heading title={words.list(clip(token, 100))} />
            <About list={list} />
            <section class="stack tight">
              <h2>{words.entries}</h2>
              <Relations
                subject={{ address: list.owner.address, list: token, isList: true }}
                kind="following"
                place={place}
                usual="earliest"
              />
            </section>
          </div>
        ) : (
          <div class="empty">
            <Heading title={words.noList} />
            <p>{words.aboutNoList(clip(token, 100))}</p>
            <a href={href([])}>{texts.home}</a>
          </div>
        )
      }
    </Show>
  );
}
