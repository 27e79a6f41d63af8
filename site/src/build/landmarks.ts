/** What TypeDoc's pages lack for readers of screens: the main part of a page, and names for what is at its side. */
const LANDMARKS = [
  ['<div class="col-content">', '<div class="col-content" role="main">'],
  ['<nav id="tsd-sidebar-links"', '<nav id="tsd-sidebar-links" aria-label="Links"'],
  ['<div class="page-menu">', '<div class="page-menu" role="navigation" aria-label="This page">'],
] as const;

/** @param html a page of TypeDoc */
export function withLandmarks(html: string): string {
  return LANDMARKS.reduce((page, [without, named]) => page.replace(without, named), html);
}
