const DOT = 46;
const ZERO = 48;
const NINE = 57;

/**
 * Reads a dotted address without making an object: this runs for every endpoint of every service.
 *
 * @param from where in `text` the address begins
 * @returns the address as an unsigned 32-bit number, or −1 when what stands there is not a canonical IPv4 address
 */
export function ipv4Number(text: string, from = 0): number {
  let address = 0;
  let octet = -1;
  let dots = 0;
  for (let index = from; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === DOT) {
      if (octet === -1 || ++dots > 3) return -1;
      address = address * 256 + octet;
      octet = -1;
      continue;
    }
    const digit = code - ZERO;
    // An octet that begins with a zero and goes on is octal to some readers.
    if (digit < 0 || digit > 9 || octet === 0) return -1;
    octet = octet === -1 ? digit : octet * 10 + digit;
    if (octet > 255) return -1;
  }
  return dots === 3 && octet !== -1 ? address * 256 + octet : -1;
}

/** The canonical text of an unsigned 32-bit number. */
export function ipv4Text(value: number): string {
  return `${value >>> 24}.${(value >>> 16) & 0xff}.${(value >>> 8) & 0xff}.${value & 0xff}`;
}

/**
 * Reads dotted decimal as Kubernetes does (`ParseIPSloppy` of k8s.io/utils/net): leading zeros are allowed and mean
 * nothing.
 *
 * @returns the canonical text, the same string where it is canonical already: lists hold a hundred thousand of these;
 *   undefined when it is not an IPv4 address
 */
export function canonicalIPv4Leniently(text: string): string | undefined {
  const first = text.indexOf(".");
  const second = text.indexOf(".", first + 1);
  const third = text.indexOf(".", second + 1);
  // With too few dots the search for the next one starts over, and finds an earlier one or none.
  if (first === -1 || second <= first || third <= second) return undefined;
  const a = octetBetween(text, 0, first);
  const b = octetBetween(text, first + 1, second);
  const c = octetBetween(text, second + 1, third);
  const d = octetBetween(text, third + 1, text.length);
  if (a === -1 || b === -1 || c === -1 || d === -1) return undefined;
  const digits = digitsOf(a) + digitsOf(b) + digitsOf(c) + digitsOf(d);
  return digits + 3 === text.length ? text : `${a}.${b}.${c}.${d}`;
}

/** The number from `start` to `end`, or −1 when what stands there is not one up to 255. */
function octetBetween(text: string, start: number, end: number): number {
  if (start === end) return -1;
  let value = 0;
  for (let index = start; index < end; index++) {
    const code = text.charCodeAt(index);
    if (code < ZERO || code > NINE) return -1;
    value = value * 10 + code - ZERO;
    if (value > 255) return -1;
  }
  return value;
}

function digitsOf(octet: number): number {
  if (octet < 10) return 1;
  return octet < 100 ? 2 : 3;
}
