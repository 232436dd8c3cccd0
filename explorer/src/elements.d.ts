// The elements of pages, for the compiler: they take only what may be shown, asked and followed. A string that is
// no Text, Href or PictureURL does not compile as what a reader sees, as a link or as a picture. The bundle has Preact's own.

import type { JSX as Preact, VNode } from 'preact';
import type { PictureURL } from './pictures/draw';
import type { Href } from './place';
import type { Text } from './text';

export { Fragment, jsx, jsxs, jsxDEV } from 'preact/jsx-runtime';

/** What an element may have in it. */
export type Children = VNode<any> | Text | '' | number | boolean | null | undefined | readonly Children[];

// Attributes whose texts are shown or read out.
type Shown =
  | 'title' | 'alt' | 'placeholder' | 'label' | 'summary' | 'content' | 'abbr'
  | 'aria-label' | 'aria-description' | 'aria-roledescription' | 'aria-valuetext' | 'aria-placeholder' | 'aria-braillelabel' | 'aria-brailleroledescription';
// Attributes that would load or run what they say.
type Never = 'dangerouslySetInnerHTML' | 'srcDoc' | 'srcdoc' | 'srcset' | 'srcSet' | 'imagesrcset' | 'imageSrcSet' | 'action' | 'formaction' | 'formAction' | 'ping' | 'poster' | 'data' | 'background' | 'xlinkHref' | 'xlink:href';

type Safe<Tag, Attributes> = {
  [Name in keyof Attributes]: Name extends 'children'
    ? Children
    : Name extends Shown
      ? Text | '' | undefined
      : Name extends Never
        ? never
        : Name extends 'href'
          ? Href | undefined
          : Name extends 'src'
            ? PictureURL | undefined
            : Name extends 'value'
              ? Tag extends 'option' ? Text | number | undefined : Attributes[Name]
              : Attributes[Name];
};

export namespace JSX {
  type Element = Preact.Element;
  type ElementType = Preact.ElementType;
  type ElementClass = Preact.ElementClass;
  type ElementAttributesProperty = Preact.ElementAttributesProperty;
  type ElementChildrenAttribute = Preact.ElementChildrenAttribute;
  type IntrinsicAttributes = Preact.IntrinsicAttributes;
  type LibraryManagedAttributes<Component, Props> = Preact.LibraryManagedAttributes<Component, Props>;
  type IntrinsicElements = { [Tag in keyof Preact.IntrinsicElements]: Safe<Tag, Preact.IntrinsicElements[Tag]> };
}
