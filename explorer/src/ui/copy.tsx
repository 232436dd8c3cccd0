// An address, or a command, with a button that copies it.

import { useEffect, useRef, useState } from 'preact/hooks';
import { isAddress } from '../data/site';
import { peopleTexts } from '../texts/accounts';
import { plain, type Text } from '../text';
import { Icon } from './icon';

/** Copies, also where pages have no clipboard: over plain HTTP. */
async function copy(text: string, shown: Element): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection()?.selectAllChildren(shown);
    return document.execCommand('copy');
  }
}

/** An address is cut in the middle where it has no room: both ends are compared. */
export function Address({ address, label = peopleTexts.copy }: { address: string; label?: Text }) {
  const shown = useRef<HTMLElement>(null);
  const [said, say] = useState<Text | ''>('');
  useEffect(() => {
    const timer = setTimeout(() => say(''), 3000);
    return () => clearTimeout(timer);
  }, [said]);
  const press = async () => {
    const done = shown.current && (await copy(address, shown.current));
    say(done ? peopleTexts.copied : peopleTexts.notCopied);
  };
  return (
    <span class="address">
      <code ref={shown} dir="ltr">
        {isAddress(address) ? (
          <>
            <span class="start">{plain(address.slice(0, -6))}</span>
            {plain(address.slice(-6))}
          </>
        ) : (
          plain(address)
        )}
      </code>
      <button
        type="button"
        class="plain icon"
        aria-label={label}
        title={label}
        onClick={() => void press()}
      >
        <Icon name="copy" size={18} />
      </button>
      <span role="status" class="small good">
        {said}
      </span>
    </span>
  );
}
