// In the place of src/texts/own.ts, for tests: all texts are half as long again, as they may be in another language.

import type { own as ownTexts, shown as shownTexts } from '../../src/texts/own';
import type { Text } from '../../src/text';

type Format = (...given: unknown[]) => string;

/** Every second letter of a word comes twice, so that words are longer, and not only more. */
const longer = (text: string): string => text.replace(/\p{L}{2}/gu, (two) => two + two.slice(1));

// What a text is given stays as it is: names and numbers are as long in any language.
const [begin, end] = ['\ue000', '\ue001'];

function around(format: Format): Format {
  return (...given) => {
    const parts: string[] = [];
    const marked = given.map((part) => (typeof part === 'string' && part ? begin + (parts.push(part) - 1) + end : part));
    return longer(format(...marked)).replace(/\ue000(\d+)\ue001/g, (_, i: string) => parts[Number(i)] ?? '');
  };
}

const lengthen = (all: unknown): unknown =>
  typeof all === 'string'
    ? longer(all)
    : typeof all === 'function'
      ? around(all as Format)
      : Array.isArray(all)
        ? all.map(lengthen)
        : Object.fromEntries(Object.entries(all as object).map(([name, one]) => [name, lengthen(one)]));

export const own = lengthen as typeof ownTexts;
export const shown = ((format: (...given: unknown[]) => string) => format as (...given: unknown[]) => Text) as typeof shownTexts;
