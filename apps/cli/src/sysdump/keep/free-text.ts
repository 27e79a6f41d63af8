/** What stands in place of what may be a secret. */
export const LEFT_OUT = "[left out]";

const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]+-----[\s\S]*?(?:-----END [A-Z ]+-----|$)/g, LEFT_OUT],
  // User and password of a URL: to the last @ before a space.
  [/([a-z][a-z0-9+.-]*:\/\/)[^\s"'<>]*@/gi, `$1${LEFT_OUT}@`],
  [/\beyJ[\w-]{6,}\.[\w-]+(?:\.[\w-]*)?/g, LEFT_OUT],
  [/\b(bearer|basic)(\s+)[\w.~+/=-]{4,}/gi, `$1$2${LEFT_OUT}`],
  [
    /([\w-]*(?:token|passw(?:or)?d|secret|api[-_]?key|credential|authorization)[\w-]*\\?["']?\s*[=:]\s*)(\\?"(?:[^"\\]|\\.)*"|'[^']*'|[^\s,;}\]]+)/gi,
    `$1${LEFT_OUT}`,
  ],
  // kubeadm's bootstrap tokens.
  [/\b[a-z0-9]{6}\.[a-z0-9]{16}\b/g, LEFT_OUT],
  [/\b[0-9a-f]{32,}\b/gi, LEFT_OUT],
];

/** Small and capital letters and digits in one word: no word of a log, but what keys and tokens look like. */
const RANDOM = /[A-Za-z0-9_+=~-]{12,}/g;

/**
 * Free text that others may have written into, such as a log: what looks like a secret is left out. What secrets look
 * like is a guess, so that free text is only taken where it is worth it.
 */
export function withoutSecrets(text: string): string {
  const known = PATTERNS.reduce((left, [pattern, by]) => left.replace(pattern, by), text);
  return known.replace(RANDOM, (word) => (looksRandom(word) ? LEFT_OUT : word));
}

function looksRandom(word: string): boolean {
  return word.split(/[-_]/).some((part) => part.length >= 8 && isMixed(part)) || (word.length >= 20 && isMixed(word));
}

function isMixed(part: string): boolean {
  return /[a-z]/.test(part) && /[A-Z]/.test(part) && /\d/.test(part);
}
