import { hostHex } from "@fairlead/netfilter/nft";

/** Half a byte is unknown. */
const UNKNOWN = "?";
const COUNT = 16;
const DIGITS = 8;

/** What a rule's expressions leave for those that follow: 16 registers of 32 bits, as hexadecimal digits. */
export class Registers {
  readonly #words: string[];
  /** Why digits of them can't be told; the last one is right more often than not. */
  reason = "nothing was loaded there";

  constructor(words: readonly string[] = new Array<string>(COUNT).fill(UNKNOWN.repeat(DIGITS))) {
    this.#words = [...words];
  }

  copy(): Registers {
    const made = new Registers(this.#words);
    made.reason = this.reason;
    return made;
  }

  /** Leaves a value from a register on; the rest of its last one becomes zero. */
  load(to: number, value: string): void {
    for (let at = 0; at < value.length; at += DIGITS) {
      this.#words[to + at / DIGITS] = value.slice(at, at + DIGITS).padEnd(DIGITS, "0");
    }
  }

  /** A number in the byte order of the machine. */
  loadNumber(to: number, value: number): void {
    this.load(to, hostHex(value));
  }

  /** @param bytes how many of them can't be told */
  loadUnknown(to: number, bytes: number, reason: string): void {
    this.load(to, UNKNOWN.repeat(2 * bytes));
    this.reason = reason;
  }

  read(from: number, bytes: number): string {
    return this.#words
      .slice(from, from + Math.ceil(bytes / 4))
      .join("")
      .slice(0, 2 * bytes);
  }
}

export function isKnown(digits: string): boolean {
  return !digits.includes(UNKNOWN);
}

/** Whether digits of which some can't be told may be those of a value. */
export function mayBe(digits: string, value: string): boolean {
  for (let at = 0; at < value.length; at += 1) {
    if (digits[at] !== UNKNOWN && digits[at] !== value[at]) return false;
  }
  return true;
}
