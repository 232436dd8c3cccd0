// The heading of a view: it names the page, and the reader begins there.

import type { Children } from '../elements';
import { useEffect, useRef } from 'preact/hooks';
import { arrived } from '../router';
import type { Text } from '../text';
import { texts } from '../texts/first';

interface Props {
  /** The name of the page in the browser; also what is shown, without children. */
  title: Text;
  children?: Children;
  class?: string;
}

/** The name of the page while a part of a view is there that says more than its heading. */
export function useTitle(title: Text): void {
  useEffect(() => {
    const before = document.title;
    document.title = texts.titled(title);
    return () => {
      document.title = before;
    };
  }, [title]);
}

/** The only h1 of a view. */
export function Heading({ title, children, ...rest }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = title === texts.title ? title : texts.titled(title);
  }, [title]);
  useEffect(() => {
    if (arrived()) {
      heading.current?.focus({ preventScroll: true });
    }
  }, []);
  return (
    <h1 ref={heading} tabIndex={-1} {...rest}>
      {children ?? title}
    </h1>
  );
}
