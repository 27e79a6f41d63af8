import { maxDepth } from "../limits.ts";

const [quote, open, backslash, close, openObject, closeObject] = [0x22, 0x5b, 0x5c, 0x5d, 0x7b, 0x7d];

/**
 * Whether the text, taken for JSON, has objects and arrays in one another deeper than `maxDepth`; it is not read for
 * that.
 */
export function isTooDeep(text: string): boolean {
  let depth = 0;
  let inText = false;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === quote) inText = !inText;
    else if (inText) at += unit === backslash ? 1 : 0;
    else if (unit === open || unit === openObject) depth++;
    else if (unit === close || unit === closeObject) depth--;
    if (depth > maxDepth) return true;
  }
  return false;
}
