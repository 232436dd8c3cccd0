// What makes a text that may be shown of what is written in this folder, and nowhere else.

import type { Text } from '../text';

// A text that becomes a part of another one may be shown itself.
type Own<T> = T extends string
  ? Text
  : T extends (...parts: infer Parts) => string
    ? (...parts: { [I in keyof Parts]: string extends Parts[I] ? Text : Parts[I] }) => Text
    : { readonly [Name in keyof T]: Own<T[Name]> };
/** Texts that may be shown. */
export const own = <T>(all: T): Own<T> => all as Own<T>;

/** A function whose results may be shown, whatever it is given. */
export const shown = <Given extends unknown[]>(format: (...given: Given) => string) => format as (...given: Given) => Text;
