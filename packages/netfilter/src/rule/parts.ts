import type { Match, Target } from "./rule.ts";

/** xt_comment holds 256 bytes with the closing NUL. */
const COMMENT_BYTES = 255;

/**
 * A comment with nothing in it but printable ASCII without quotes and backslashes: the names in it come from API
 * objects, and whatever they hold must stay inside the comment.
 */
export function comment(text: string): Match {
  return { kind: "comment", text: text.replace(/[^\x20-\x7e]|["\\]/g, "?").slice(0, COMMENT_BYTES) };
}

/** `-j CHAIN`: goes to a chain and comes back at its end. */
export function jump(chain: string): Target {
  return { kind: "jump", chain };
}
