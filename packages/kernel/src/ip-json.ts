/**
 * What `ip -json` prints. It writes a device's name as it is: a name may have control characters, which JSON has not.
 *
 * @throws SyntaxError when it is not JSON all the same
 */
export function parseIpJson(text: string): unknown {
  if (text.trim() === "") return [];
  return JSON.parse(text.replaceAll(CONTROL, escaped));
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: all but white space, which no name has
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g;

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
