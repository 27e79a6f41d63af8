const [QUOTE, OPEN, BACKSLASH, CLOSE, OPEN_OBJECT, CLOSE_OBJECT] = [0x22, 0x5b, 0x5c, 0x5d, 0x7b, 0x7d];

/**
 * Whether the text, taken for JSON, has objects and arrays in one another deeper than `maxDepth`; it is not read for
 * that.
 */
export function isTooDeep(text: string, maxDepth: number): boolean {
  let depth = 0;
  let inText = false;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) inText = !inText;
    else if (inText) at += unit === BACKSLASH ? 1 : 0;
    else if (unit === OPEN || unit === OPEN_OBJECT) depth++;
    else if (unit === CLOSE || unit === CLOSE_OBJECT) depth--;
    if (depth > maxDepth) return true;
  }
  return false;
}
