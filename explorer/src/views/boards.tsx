// Leaderboards: everyone by a count, with a way to somebody's place.

import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { boards, openBoard, type Ranking } from '../data/boards';
import type { Board, Ranked } from '../data/site';
import { boardTexts } from '../latertexts';
import { go, href, type Href, type Place } from '../router';
import { plain, type Text } from '../text';
import { number, sentences } from '../texts';
import { Heading } from '../ui/heading';
import { Show, useLoad } from '../ui/load';
import { PersonLink } from '../ui/person';
import { Rows } from '../ui/rows';
import { Marks } from '../ui/slots';

export function Boards({ place }: { place: Place }) {
  const [, name = 'followers'] = place.path;
  const ascending = place.query.get('order') === 'fewest';
  const all = useLoad(boards, []);
  return (
    <div class="stack boards">
      <Show loaded={all}>
        {(known) => {
          const board = known.find((one) => one === name);
          return (
            <>
              <Heading title={board ? boardTexts.titles[board] : boardTexts.title} />
              <Tabs boards={known} current={board} />
              {board ? <Opened key={`${board} ${ascending}`} board={board} ascending={ascending} /> : <p class="empty">{boardTexts.none}</p>}
            </>
          );
        }}
      </Show>
    </div>
  );
}

function Tabs({ boards, current }: { boards: readonly Board[]; current: Board | undefined }) {
  const tabs = useRef<HTMLElement>(null);
  useEffect(() => {
    tabs.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [current]);
  return (
    <nav ref={tabs} class="tabs" aria-label={boardTexts.title}>
      {boards.map((board) => (
        <a key={board} href={href(['boards', board])} aria-current={board === current ? 'page' : undefined}>
          {boardTexts.names[board]}
        </a>
      ))}
    </nav>
  );
}

function Opened({ board, ascending }: { board: Board; ascending: boolean }) {
  const loaded = useLoad(() => openBoard(board, ascending), []);
  return <Show loaded={loaded}>{(ranking) => <Table board={board} ascending={ascending && ranking.reversible} ranking={ranking} />}</Show>;
}

/** The address of a board in the other order. */
const turned = (board: Board, ascending: boolean): Href => href(['boards', board], { order: ascending ? undefined : 'fewest' });

function Table({ board, ascending, ranking }: { board: Board; ascending: boolean; ranking: Ranking }) {
  const [goal, setGoal] = useState<{ index: number }>();
  const row = useCallback((ranked: Ranked) => <Cells board={board} counts={ranking.counts} ranked={ranked} />, [board, ranking]);
  const head = (
    <>
      <span role="columnheader" class="num">
        {boardTexts.place}
      </span>
      <span role="columnheader">{boardTexts.account}</span>
      {ranking.counts.map((count) => (
        <span
          key={count}
          role="columnheader"
          class={count === board ? 'num current' : 'num'}
          aria-sort={count !== board ? undefined : ascending ? 'ascending' : 'descending'}
        >
          {ranking.reversible ? (
            <a href={count === board ? turned(board, ascending) : href(['boards', count])}>
              {boardTexts.names[count]}
              {count === board && <span aria-hidden="true">{ascending ? boardTexts.ascending : boardTexts.descending}</span>}
            </a>
          ) : (
            boardTexts.names[count]
          )}
        </span>
      ))}
    </>
  );
  return (
    <>
      <Find ranking={ranking} found={setGoal} />
      <div class="row between">
        <p class="quiet small">
          {sentences(boardTexts.about[board], ranking.cut ? boardTexts.first(number(ranking.total)) : boardTexts.all(number(ranking.total)))}
        </p>
        {ranking.reversible && (
          <button type="button" onClick={() => go(turned(board, ascending))}>
            {ascending ? boardTexts.most : boardTexts.fewest}
          </button>
        )}
      </div>
      <div class="board" style={{ '--counts': ranking.counts.length }}>
        <Rows
          label={boardTexts.titles[board]}
          source={`${board} ${ascending}`}
          total={ranking.total}
          height={56}
          pageSize={ranking.reversible ? 100 : 20}
          page={ranking.page}
          row={row}
          head={head}
          empty={<p class="empty">{boardTexts.nobody}</p>}
          goal={goal}
          onShown={() => performance.mark('followpress:board')}
        />
      </div>
    </>
  );
}

function Cells({ board, counts, ranked }: { board: Board; counts: readonly Board[]; ranked: Ranked }) {
  return (
    <>
      <span role="cell" class="num quiet">
        {ranked.counts[board] ? number(ranked.place) : boardTexts.nothing}
      </span>
      <span role="cell" class="account">
        <PersonLink person={ranked} />
        <Marks address={ranked.address} />
      </span>
      {counts.map((count) => (
        <span key={count} role="cell" class={count === board ? 'num current' : 'num'}>
          {number(ranked.counts[count] ?? 0)}
        </span>
      ))}
    </>
  );
}

/** Finds somebody's place. */
function Find({ ranking, found }: { ranking: Ranking; found: (goal: { index: number }) => void }) {
  const [told, tell] = useState<Text | ''>('');
  const asked = useRef(0);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const user = new FormData(event.currentTarget as HTMLFormElement).get('user')?.toString().trim() ?? '';
    const turn = ++asked.current;
    if (!user) {
      return;
    }
    try {
      const index = await ranking.find(user);
      if (turn === asked.current) {
        tell(index === undefined ? boardTexts.notThere(plain(user)) : '');
        if (index !== undefined) {
          found({ index });
        }
      }
    } catch (error) {
      if (turn === asked.current) {
        tell(plain(error instanceof Error ? error.message : String(error)));
      }
    }
  };
  return (
    <form class="row" role="search" aria-label={boardTexts.find} onSubmit={(event) => void submit(event)}>
      <input type="search" name="user" aria-label={boardTexts.user} placeholder={boardTexts.user} autocomplete="off" spellcheck={false} />
      <button type="submit">{boardTexts.find}</button>
      <span role="status" class="small">
        {told}
      </span>
    </form>
  );
}
