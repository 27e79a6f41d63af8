/**
 * Characters that are not seen or change how what follows is read: bidirectional controls and other format characters,
 * line and paragraph separators, control characters that JSON does not escape.
 */
const HIDDEN = /[\p{Cf}\p{Zl}\p{Zp}\u007f-\u009f]/gu;

/**
 * Text in which hidden characters stand as JSON's escapes (`\\u202e`). Of a JSON text it is the same JSON: they can
 * stand in its strings only.
 */
export function withoutHidden(text: string): string {
  return text.replace(HIDDEN, (found) =>
    Array.from({ length: found.length }, (_, i) => `\\u${found.charCodeAt(i).toString(16).padStart(4, "0")}`).join(""),
  );
}

/** A text of unknown origin in quotes, for people to read: one line, and nothing in it hidden. */
export function quoted(text: string): string {
  return withoutHidden(JSON.stringify(text));
}
