// The search box, and boxes that choose an account: a combobox with a list of what was found so far.

import type { Children } from '../elements';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { better, exact, marked, ready, same, suggest, termOf, type Hit } from '../data/search';
import type { Person } from '../data/site';
import { go, href, type Href, type Place } from '../router';
import { useSettings } from '../settings';
import { plain, type Text } from '../text';
import { texts } from '../texts/first';
import { Icon } from './icon';
import { Avatar, called, nameOf, short, Ticked } from './person';

const most = 8; // shown at once
const pause = 80; // milliseconds without a keystroke before a name is looked up

/** The way to all that is found. */
const all = 'all';
type Option = Hit | typeof all;

/** Where a hit is. */
export const placeOf = ({ person, token }: Hit): Href => href(token ? ['l', token] : ['a', person.address || person.name]);

/** Of two hits only one has a key. */
export const keyOf = (option: Option): string => (option === all ? all : option.token ? 'list' : option.person.address || option.person.name);

/** A text with what was typed marked in it. */
function Marked({ text, at }: { text: Text; at: [number, number] | undefined }) {
  return at ? (
    <>
      {plain(text.slice(0, at[0]))}
      <mark>{plain(text.slice(...at))}</mark>
      {plain(text.slice(at[1]))}
    </>
  ) : (
    <>{text}</>
  );
}

/** An address as far as it tells why it was found: its beginning, the term and its end. */
function Address({ address, term }: { address: string; term: string }) {
  const at = marked(address, term);
  if (!at) {
    return <>{short(address)}</>;
  }
  const [before, after] = [address.slice(0, at[0]), address.slice(at[1])];
  return (
    <>
      {plain(before.length > 6 ? before.slice(0, 6) + '…' : before)}
      <mark>{plain(address.slice(...at))}</mark>
      {plain(after.length > 4 ? '…' + after.slice(-4) : after)}
    </>
  );
}

/** Who or what was found, with what was typed marked in it. */
export function Found({ hit, typed, marks }: { hit: Hit; typed: string; marks?: Children }) {
  const { person, token } = hit;
  const term = termOf(typed);
  const name = token ? texts.list(plain(token)) : nameOf(person);
  const at = name ? marked(name, term) : undefined;
  const address = <Address address={person.address} term={at || term.length < 3 ? '' : term} />;
  return (
    <span class="names">
      <bdi class="line">{name ? <Marked text={name} at={at} /> : address}</bdi>
      <span class="under quiet small">
        <Ticked person={person} />
        {marks}
        {name && <bdi>{token ? called(person) : address}</bdi>}
      </span>
    </span>
  );
}

/** How many follow whom was found. */
export function FoundFollowers({ hit: { person, token } }: { hit: Hit }) {
  return token || person.followers === undefined ? null : <span class="quiet small num">{texts.followersOf(person.followers)}</span>;
}

function Choice({ option, typed }: { option: Option; typed: string }) {
  if (option === all) {
    return (
      <>
        <span class="all">
          <Icon name="search" />
        </span>
        <span class="line">{texts.searchMore(plain(typed.trim()))}</span>
      </>
    );
  }
  return (
    <>
      <Avatar person={option.person} size={32} />
      <Found hit={option} typed={typed} />
      <FoundFollowers hit={option} />
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

/** What a text finds first, if that is what it says, so that nothing else is meant. */
const meant = ([first]: readonly Hit[]): Hit | undefined => (first?.rank === same ? first : undefined);

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
}

function Box({ id, label, hint, typed, type, options, take, enter, shortcut = false }: BoxProps) {
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
              <Choice option={option} typed={typed} />
            </li>
          ))}
      </ul>
      <p class="hidden" role="status">
        {shown && texts.results(options.filter((option) => option !== all).length)}
      </p>
    </form>
  );
}

/** Draws again once the most followed accounts are there, which suggestions are of: they are read when a box has the focus. */
function useReady(): void {
  const [, fill] = useState(0);
  useEffect(() => {
    const read = () => {
      if (document.activeElement?.matches('[role=combobox]')) {
        removeEventListener('focusin', read);
        ready().then(
          () => fill((n) => n + 1),
          () => undefined, // names can be looked up without it
        );
      }
    };
    addEventListener('focusin', read);
    read();
    return () => removeEventListener('focusin', read);
  }, []);
}

/** The box of the page, which goes to an account, a list, or all that was found. */
export function Search({ place }: { place: Place }) {
  const asked = place.path[0] === 'search' ? (place.query.get('q') ?? '') : '';
  const [typed, type] = useState(asked);
  const { shortcuts } = useSettings();
  const hits = suggest(typed, useExact(typed)).slice(0, most);
  useReady();
  useEffect(() => type(asked), [asked]);
  const take = (option: Option) => {
    type(option === all ? typed : '');
    go(option === all ? href(['search'], { q: typed.trim() }) : placeOf(option));
  };
  return (
    <Box
      id="found"
      label={texts.search}
      hint={texts.searchFor}
      typed={typed}
      type={type}
      options={typed.trim() ? [...hits, all] : []}
      take={take}
      enter={() => take(meant(hits) ?? all)}
      shortcut={shortcuts}
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

const isAccount = ({ token }: Hit): boolean => !token;

/** A box that finds accounts as that of the page does, and gives the one that is chosen. */
export function Chooser({ id, label, hint, text = '', chosen, nobody }: ChooserProps) {
  const [typed, type] = useState(text);
  const hits = suggest(typed, useExact(typed).filter(isAccount)).slice(0, most);
  const asked = useRef(0);
  useReady();
  const take = ({ person }: Hit) => {
    type(nameOf(person) || person.address);
    chosen(person);
  };
  // Who presses Enter at once means what is looked up yet.
  const enter = async () => {
    const turn = ++asked.current;
    const found = meant(hits) ?? (await exact(typed).catch((): Hit[] => [])).filter(isAccount).sort(better)[0];
    if (turn === asked.current) {
      if (found) {
        take(found);
      } else {
        nobody(typed.trim());
      }
    }
  };
  return (
    <Box
      id={id}
      label={label}
      hint={hint}
      typed={typed}
      type={type}
      options={hits}
      take={(option) => option !== all && take(option)}
      enter={() => void enter()}
    />
  );
}
