// What the start shows to a reader who is somebody: what those whom they follow did, and whom they may want to follow.

import { useState } from 'preact/hooks';
import { Feed, few, pageLength } from '../data/feed';
import { mine } from '../data/mine';
import { suggestions, type Suggestion } from '../data/suggestions';
import { actTexts } from '../texts/later';
import { yourTexts as words } from '../texts/mine';
import { date } from '../texts/first';
import { Act } from '../ui/acts';
import { Show, useLoad } from '../ui/load';
import { Avatar, PersonLink } from '../ui/person';

function Entries({ feed }: { feed: Feed }) {
  const [shown, show] = useState(few);
  const [isReading, read] = useState(false);
  const { entries, people, period } = feed;
  const isMore = shown < entries.length || feed.hasMore;
  const more = async () => {
    const wanted = shown < pageLength ? pageLength : shown + pageLength;
    read(true);
    try {
      await feed.reach(wanted);
      show(wanted);
    } finally {
      read(false);
    }
  };
  if (!entries.length && !feed.hasMore) {
    return <p class="empty">{people.size ? words.quiet(date(period.from)) : words.nobody}</p>;
  }
  return (
    <>
      <p class="quiet small">{actTexts.counted(actTexts.minute(period.to))}</p>
      <ul class="acts">
        {entries.slice(0, shown).map((one, i) => (
          <Act key={i} entry={one} actor={one.actor} about={one.person} when={actTexts.ago(period.to - one.time)} />
        ))}
      </ul>
      {isMore ? (
        <button type="button" disabled={isReading} onClick={() => void more()}>
          {words.more}
        </button>
      ) : (
        <p class="quiet small">{words.allSince(date(period.from))}</p>
      )}
    </>
  );
}

function Following() {
  const loaded = useLoad(() => Feed.open(), []);
  return (
    <Show loaded={loaded}>
      {(feed) =>
        feed && (
          <section class="feed" aria-labelledby="feed">
            <h2 id="feed">{words.feed}</h2>
            <Entries feed={feed} />
          </section>
        )
      }
    </Show>
  );
}

const faces = 3;

function Suggested({ one: { person, by, isRecommended } }: { one: Suggestion }) {
  return (
    <li>
      <PersonLink person={person} />
      <span class="known quiet small">
        {by.length > 0 && (
          <span class="faces">
            {by.slice(0, faces).map((known) => (
              <Avatar key={known.address} person={known} size={20} />
            ))}
          </span>
        )}
        {by.length ? words.by(by.length) : isRecommended && words.recommended}
      </span>
    </li>
  );
}

function Suggestions() {
  const loaded = useLoad(suggestions, [], false); // too much for each round of a live site
  return (
    <section class="suggested" aria-labelledby="suggested">
      <h2 id="suggested">{words.suggested}</h2>
      <Show loaded={loaded}>
        {(found) =>
          found?.length ? (
            <ul class="ranking">
              {found.map((one) => (
                <Suggested key={one.person.address} one={one} />
              ))}
            </ul>
          ) : (
            <p class="empty">{words.noSuggestions}</p>
          )
        }
      </Show>
    </section>
  );
}

export function Yours() {
  const { me } = mine();
  return me ? (
    <div key={me.address} class="columns sections">
      <Following />
      <Suggestions />
    </div>
  ) : null;
}
