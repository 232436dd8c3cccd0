// The search box, and boxes that choose an account: a combobox with a list of what was found so far.

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { isWhole } from '../data/site';
import { exact, marked, ready, suggest, termOf, type Hit } from '../data/search';
import type { Person } from '../data/site';
import { go, href, type Href, type Place } from '../router';
import { useSettings } from '../settings';
import { gap, plain, type Text } from '../text';
import { texts } from '../texts/first';
import { Icon } from './icon';
import { Avatar, called, Followers, nameOf, short } from './person';

const most = 8; // shown at once
const pause = 80; // milliseconds without a keystroke before a name is looked up

type Option = Hit | { kind: 'all' };

const placeOf = (option: Option, typed: string): Href => {
  switch (option.kind) {
    case 'person':
      return href(['a', option.person.address || option.person.name]);
    case 'list':
      return href(['l', option.token]);
    case 'all':
      return href(['search'], { q: typed.trim() });
  }
};

const keyOf = (option: Option): string =>
  option.kind === 'all' ? 'all' : option.kind === 'list' ? 'list' : option.person.address || option.person.name;

/** Exact hits first, then suggestions that are not among them. */
function optionsOf(typed: string, hits: readonly Hit[], people: readonly Person[]): Option[] {
  if (!typed.trim()) {
    return [];
  }
  const known = new Set(hits.map((hit) => (hit.kind === 'person' ? hit.person.address : '')));
  const others = people.filter(({ address }) => !known.has(address)).map((person): Hit => ({ kind: 'person', person }));
  return [...hits, ...others.slice(0, most), { kind: 'all' }];
}

/** A name with what was typed marked in it. */
function Marked({ name, typed }: { name: Text; typed: string }) {
  const at = marked(name, termOf(typed));
  return at ? (
    <>
      {plain(name.slice(0, at[0]))}
      <mark>{plain(name.slice(...at))}</mark>
      {plain(name.slice(at[1]))}
    </>
  ) : (
    <>{name}</>
  );
}

function Choice({ option, typed, whole }: { option: Option; typed: string; whole: boolean }) {
  if (option.kind === 'all') {
    return (
      <>
        <span class="all">
          <Icon name="search" />
        </span>
        <span class="line">{whole ? texts.searchAll(plain(typed.trim())) : texts.searchMore(plain(typed.trim()))}</span>
      </>
    );
  }
  const { person } = option;
  return (
    <>
      <Avatar person={person} size={32} />
      <span class="line">
        <bdi>
          <Marked name={option.kind === 'list' ? texts.list(plain(option.token)) : nameOf(person) || plain(person.address)} typed={typed} />
        </bdi>{gap}
        {option.kind === 'list' ? (
          <bdi class="quiet small">{called(person)}</bdi>
        ) : (
          person.name && person.address && <span class="quiet small">{short(person.address)}</span>
        )}
      </span>
      {!!person.followers && <Followers count={person.followers} small />}
    </>
  );
}

/** What exact found for a text; what arrives for an earlier one is dropped. */
function useExact(typed: string): Hit[] {
  const [answer, set] = useState<{ typed: string; hits: Hit[] }>({ typed: '', hits: [] });
  useEffect(() => {
    let wanted = !!typed.trim();
    const timer = setTimeout(() => {
      exact(typed).then(
        (hits) => wanted && set({ typed, hits }),
        () => undefined, // what is not there cannot be looked up: suggestions remain
      );
    }, pause);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [typed]);
  return answer.typed === typed ? answer.hits : [];
}

/** Whether what a text finds first is what it says, so that nothing else is meant. */
function isMeant(typed: string, hits: readonly Hit[], first: Option | undefined): first is Hit {
  const term = termOf(typed);
  return !!first && first.kind !== 'all' && (hits.length > 0 || [term, term + '.eth'].includes(termOf(first.person.name)));
}

interface BoxProps {
  /** Part of the ids of its elements. */
  id: string;
  label: Text;
  hint: Text;
  typed: string;
  type: (typed: string) => void;
  options: readonly Option[];
  take: (option: Option) => void;
  /** Enter, while no option is chosen. */
  enter: () => void;
  /** Whether the key / goes here. */
  shortcut?: boolean;
  /** Whether all accounts can be searched. */
  whole?: boolean;
}

function Box({ id, label, hint, typed, type, options, take, enter, shortcut = false, whole = false }: BoxProps) {
  const [open, setOpen] = useState(false);
  const [chosen, choose] = useState<string>();
  const input = useRef<HTMLInputElement>(null);
  const at = options.findIndex((option) => keyOf(option) === chosen);
  const shown = open && options.length > 0;

  useEffect(() => {
    const focus = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      const writes = target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
      if (event.key === '/' && shortcut && !writes && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        input.current?.select();
        input.current?.focus();
      }
    };
    addEventListener('keydown', focus);
    return () => removeEventListener('keydown', focus);
  }, [shortcut]);
  useLayoutEffect(() => {
    if (shown) {
      performance.mark('followpress:search', { detail: typed });
    }
  });
  useLayoutEffect(() => {
    if (shown && at >= 0) {
      document.getElementById(`${id}-${at}`)?.scrollIntoView({ block: 'nearest' });
    }
  }, [at]);

  const close = () => {
    setOpen(false);
    choose(undefined);
  };
  const submit = (event: Event) => {
    event.preventDefault();
    const option = options[at];
    if (option) {
      close();
      take(option);
    } else if (typed.trim()) {
      close();
      enter();
    }
  };
  const press = (event: KeyboardEvent) => {
    if (event.isComposing) {
      return; // the keys are for the input method
    }
    const steps = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (steps && options.length) {
      event.preventDefault();
      const next = open ? at + steps : steps > 0 ? 0 : options.length - 1;
      // Between the last and the first is the box itself.
      const option = options[next < -1 ? options.length - 1 : next];
      choose(option && keyOf(option));
      setOpen(true);
    } else if (event.key === 'Escape') {
      event.preventDefault();
      if (shown) {
        close();
      } else {
        type('');
      }
    }
  };

  return (
    <form class="search" role="search" aria-label={label} onSubmit={submit}>
      <Icon name="search" />
      <input
        ref={input}
        type="text"
        inputMode="search"
        role="combobox"
        aria-label={label}
        aria-expanded={shown}
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={shown && at >= 0 ? `${id}-${at}` : undefined}
        aria-keyshortcuts={shortcut ? '/' : undefined}
        placeholder={hint}
        value={typed}
        maxLength={255}
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        enterkeyhint="search"
        dir="auto"
        onInput={(event) => {
          type(event.currentTarget.value);
          choose(undefined);
          setOpen(true);
        }}
        onClick={() => setOpen(true)}
        onKeyDown={press}
        onBlur={close}
      />
      {shortcut && (
        <kbd aria-hidden="true" class="quiet small">
          {texts.key}
        </kbd>
      )}
      <ul
        id={id}
        role="listbox"
        aria-label={texts.found}
        hidden={!shown}
        onMouseDown={(event) => event.preventDefault() /* the box keeps the focus */}
      >
        {shown &&
          options.map((option, i) => (
            <li
              key={keyOf(option)}
              id={`${id}-${i}`}
              role="option"
              aria-selected={i === at}
              onClick={() => {
                close();
                take(option);
              }}
            >
              <Choice option={option} typed={typed} whole={whole} />
            </li>
          ))}
      </ul>
      <p class="hidden" role="status">
        {shown && texts.results(options.filter(({ kind }) => kind !== 'all').length)}
      </p>
    </form>
  );
}

/** Draws again once the most followed accounts are there, which suggestions are of. */
function useReady(): void {
  const [, fill] = useState(0);
  useEffect(() => {
    ready().then(
      () => fill((n) => n + 1),
      () => undefined, // names can be looked up without it
    );
  }, []);
}

/** The box of the page, which goes to an account, a list, or all that was found. */
export function Search({ place }: { place: Place }) {
  const asked = place.path[0] === 'search' ? (place.query.get('q') ?? '') : '';
  const [typed, type] = useState(asked);
  const [whole, setWhole] = useState(false);
  const { shortcuts } = useSettings();
  const hits = useExact(typed);
  const options = optionsOf(typed, hits, suggest(typed, most));
  useReady();
  useEffect(() => type(asked), [asked]);
  useEffect(() => void isWhole().then(setWhole, () => undefined), []);
  const take = (option: Option) => {
    type(option.kind === 'all' ? typed : '');
    go(placeOf(option, typed));
  };
  const enter = () => take(isMeant(typed, hits, options[0]) ? options[0] : { kind: 'all' });
  return (
    <Box
      id="found"
      label={texts.search}
      hint={texts.searchFor}
      typed={typed}
      type={type}
      options={options}
      take={take}
      enter={enter}
      shortcut={shortcuts}
      whole={whole}
    />
  );
}

interface ChooserProps {
  id: string;
  label: Text;
  hint: Text;
  /** What is typed at first. */
  text?: string;
  chosen: (person: Person) => void;
  /** Enter, while what was typed is nobody. */
  nobody: (typed: string) => void;
}

/** A box that finds accounts as that of the page does, and gives the one that is chosen. */
export function Chooser({ id, label, hint, text = '', chosen, nobody }: ChooserProps) {
  const [typed, type] = useState(text);
  const hits = useExact(typed).filter(({ kind }) => kind === 'person');
  const options = optionsOf(typed, hits, suggest(typed, most)).filter(({ kind }) => kind === 'person');
  const asked = useRef(0);
  useReady();
  const take = (option: Option) => {
    if (option.kind === 'person') {
      type(nameOf(option.person) || option.person.address);
      chosen(option.person);
    }
  };
  // Who presses Enter at once means what is looked up yet.
  const enter = async () => {
    const turn = ++asked.current;
    const found = isMeant(typed, hits, options[0]) ? options[0] : (await exact(typed).catch((): Hit[] => [])).find(({ kind }) => kind === 'person');
    if (turn === asked.current) {
      if (found) {
        take(found);
      } else {
        nobody(typed.trim());
      }
    }
  };
  return <Box id={id} label={label} hint={hint} typed={typed} type={type} options={options} take={take} enter={() => void enter()} />;
}
