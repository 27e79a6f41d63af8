/** @throws Error when a guest printed no number behind these words in a line of their own: a program of it failed */
export function printedNumber(text: string, words: string): number {
  const found = new RegExp(`^${words} ([\\d.]+)$`, "m").exec(text)?.[1];
  if (found === undefined)
    throw new Error(`the guest counted nothing for "${words}"; its last words:\n${text.slice(-2_000)}`);
  return Number(found);
}
