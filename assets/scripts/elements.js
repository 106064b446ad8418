// Elements of a page: those that it must have, and what lies around an event.

/** @template V @param {V} value @param {string} name @returns {NonNullable<V>} */
export function needed(value, name) {
  if (value === null || value === undefined) throw new Error(`This page has no ${name}`);
  return value;
}

/** @type {<E extends HTMLElement = HTMLElement>(parent: ParentNode, selector: string) => E} */
export const one = (parent, selector) => needed(parent.querySelector(selector), selector);

// The nearest element that holds what an event happened to.
/** @param {Event} event @param {string} selector */
export const around = (event, selector) => (event.target instanceof Element ? event.target.closest(selector) : null);
