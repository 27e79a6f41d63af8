/** Text in which URLs have lost their user and password, as `https://xxxxx@host`. */
export function withoutPasswords(text: string): string {
  // To the last @ before a space: in a malformed URL the password may hold anything.
  return text.replace(/([a-z][a-z0-9+.-]*:\/\/)[^\s"'<>]*@/gi, "$1xxxxx@");
}

/** The same of what should be a URL, its scheme left out perhaps. */
export function urlForMessages(text: string): string {
  return text.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, "$1xxxxx@");
}

const MOST_SAID = 500;

/**
 * What another program said, for a message: in quotes, on one line, without characters that act on a terminal, and cut.
 */
export function quoted(said: string): string {
  const text = withoutPasswords(said.trim());
  const escaped = JSON.stringify(text.slice(0, MOST_SAID)).replace(UNPRINTABLE, codeUnit);
  return text.length > MOST_SAID ? `${escaped} (cut)` : escaped;
}

/** Controls that JSON leaves as they are, and characters that are invisible or turn the direction of writing. */
const UNPRINTABLE = /[\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

function codeUnit(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
