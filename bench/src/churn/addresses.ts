/** Finds IPv4 addresses of 10.152.0.0/13 in text that comes in chunks; both encodings of the API write them as text. */
const MOVED = /(?<![\d.])10\.15[2-9]\.\d{1,3}\.\d{1,3}(?![\d.])/g;
/** Characters of the longest address, and one after it: without that one, an address may not be whole yet. */
const LONGEST = 16;

/** Notes when each address first came by in a stream. */
export class AddressScanner {
  readonly #found: Map<string, number>;
  #rest = "";

  /** @param found address → milliseconds since the epoch; several streams may share it */
  constructor(found: Map<string, number>) {
    this.#found = found;
  }

  /** @param at milliseconds since the epoch */
  read(chunk: Buffer, at: number): void {
    const text = this.#rest + chunk.toString("latin1");
    for (const { 0: address, index } of text.matchAll(MOVED)) {
      // What ends with the chunk may go on in the next one.
      if (index + address.length < text.length && !this.#found.has(address)) this.#found.set(address, at);
    }
    this.#rest = text.slice(-LONGEST);
  }
}
