/**
 * A comment as nft writes it. It has no escapes: a quotation mark within ends the text, so there is none in what we
 * write, and in what others wrote it stands as it is.
 */
export function quoted(comment: string): string {
  return `"${comment}"`;
}
