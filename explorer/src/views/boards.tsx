// Leaderboards: everyone by a count, with a way to somebody's place.

import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { boards, openBoard, type Ranking } from '../data/boards';
import type { Board, Person, Ranked } from '../data/site';
import { boardTexts } from '../texts/later';
import { href, type Place } from '../router';
import { clip, plain, type Text } from '../text';
import { number, sentences } from '../texts/first';
import { Heading } from '../ui/heading';
import { Show, useLoad } from '../ui/load';
import { called, PersonLink } from '../ui/person';
import { Rows } from '../ui/rows';
import { Chooser } from '../ui/search';
import { Legend } from '../ui/slots';
import { Tabs } from '../ui/tabs';

type Goal = { index: number } | undefined;

/** The place that an address names: `?place=21`. */
const goalOf = ({ query }: Place): Goal => {
  const place = Number(query.get('place'));
  return Number.isSafeInteger(place) && place > 0 ? { index: place - 1 } : undefined;
};

export function Boards({ place }: { place: Place }) {
  const [, name = 'followers'] = place.path;
  const all = useLoad(boards, []);
  return (
    <div class="boards">
      <Show loaded={all}>
        {(known) => {
          const board = known.find((one) => one === name);
          return board ? (
            <Opened key={board} board={board} boards={known} place={place} />
          ) : (
            <>
              <Heading title={boardTexts.title} />
              <BoardTabs boards={known} current={undefined} />
              <p class="empty">{boardTexts.none}</p>
            </>
          );
        }}
      </Show>
    </div>
  );
}

/** Boards that few look for. */
const rare: readonly Board[] = ['mutes', 'muted'];

function BoardTabs({ boards, current }: { boards: readonly Board[]; current: Board | undefined }) {
  const [opened, open] = useState(false);
  const all = opened || rare.some((board) => board === current);
  return (
    <Tabs label={boardTexts.title}>
      {boards
        .filter((board) => all || !rare.includes(board))
        .map((board) => (
          <a key={board} href={href(['boards', board])} aria-current={board === current ? 'page' : undefined}>
            {boardTexts.names[board]}
          </a>
        ))}
      {!all && boards.some((board) => rare.includes(board)) && (
        <button type="button" class="plain" aria-expanded={false} onClick={() => open(true)}>
          {boardTexts.more}
        </button>
      )}
    </Tabs>
  );
}

function Opened({ board, boards, place }: { board: Board; boards: readonly Board[]; place: Place }) {
  const loaded = useLoad(() => openBoard(board), []);
  const asked = goalOf(place);
  const [goal, setGoal] = useState(asked);
  const [told, tell] = useState<Text | ''>('');
  useEffect(() => setGoal(asked), [asked?.index]);
  const ranking = loaded.state === 'done' ? loaded.value : undefined;
  const turn = useRef(0);
  const find = async ({ address, name }: Person) => {
    const now = ++turn.current;
    tell('');
    try {
      const index = await ranking?.find(address);
      if (now === turn.current) {
        if (index === undefined) {
          tell(boardTexts.notThere(called({ address, name })));
        } else {
          setGoal({ index });
        }
      }
    } catch (error) {
      if (now === turn.current) {
        tell(plain(error instanceof Error ? error.message : String(error)));
      }
    }
  };
  return (
    <>
      <div class="board-head">
        <Heading title={boardTexts.titles[board]} />
        <Chooser
          id="places"
          label={boardTexts.find}
          hint={boardTexts.find}
          chosen={(person) => void find(person)}
          nobody={(typed) => tell(boardTexts.notThere(clip(typed, 100)))}
        />
      </div>
      <BoardTabs boards={boards} current={board} />
      <Legend />
      <p role="status" class="notice small" hidden={!told}>
        {told}
      </p>
      <Show loaded={loaded}>{(ranking) => <Table board={board} ranking={ranking} goal={goal} />}</Show>
    </>
  );
}

function Table({ board, ranking, goal }: { board: Board; ranking: Ranking; goal: Goal }) {
  const row = useCallback((ranked: Ranked) => <Cells board={board} counts={ranking.counts} ranked={ranked} />, [board, ranking]);
  const head = (
    <>
      <span role="columnheader" class="num">
        {boardTexts.place}
      </span>
      <span role="columnheader">{boardTexts.account}</span>
      {ranking.counts.map((count) => (
        <span key={count} role="columnheader" class={count === board ? 'num current' : 'num'} aria-sort={count === board ? 'descending' : undefined}>
          {count === board ? boardTexts.sorted(boardTexts.names[count]) : <a href={href(['boards', count])}>{boardTexts.names[count]}</a>}
        </span>
      ))}
    </>
  );
  return (
    <>
      <p class="quiet small about">
        {sentences(boardTexts.about[board], ranking.cut ? boardTexts.first(number(ranking.total)) : boardTexts.all(number(ranking.total)))}
      </p>
      <div class="board" style={{ '--counts': ranking.counts.length }}>
        <Rows
          label={boardTexts.titles[board]}
          source={board}
          total={ranking.total}
          height={56}
          pageSize={ranking.counts.length > 1 ? 100 : 20}
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
      </span>
      {counts.map((count) => (
        <span key={count} role="cell" class={count === board ? 'num current' : 'num'}>
          {number(ranked.counts[count] ?? 0)}
        </span>
      ))}
    </>
  );
}
