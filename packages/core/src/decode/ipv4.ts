const ZERO = 48;
const NINE = 57;

/**
 * Reads dotted decimal IPv4 as Kubernetes does (`ParseIPSloppy`): leading zeros are allowed and mean nothing. Returns the
 * canonical text, the same string where it is canonical already: lists hold a hundred thousand of these.
 */
export function canonicalIPv4(text: string): string | undefined {
  const first = text.indexOf(".");
  const second = text.indexOf(".", first + 1);
  const third = text.indexOf(".", second + 1);
  // Too few dots: the search for the next one starts over and finds an earlier one, or none at all.
  if (first === -1 || second <= first || third <= second) return undefined;
  const a = octet(text, 0, first);
  const b = octet(text, first + 1, second);
  const c = octet(text, second + 1, third);
  const d = octet(text, third + 1, text.length);
  if (a === -1 || b === -1 || c === -1 || d === -1) return undefined;
  const digits = width(a) + width(b) + width(c) + width(d);
  return digits + 3 === text.length ? text : `${a}.${b}.${c}.${d}`;
}

/** The number from `start` to `end`, or -1 where none up to 255 stands there. */
function octet(text: string, start: number, end: number): number {
  if (start === end) return -1;
  let value = 0;
  for (let i = start; i < end; i++) {
    const code = text.charCodeAt(i);
    if (code < ZERO || code > NINE) return -1;
    value = value * 10 + code - ZERO;
    if (value > 255) return -1;
  }
  return value;
}

function width(value: number): number {
  if (value < 10) return 1;
  return value < 100 ? 2 : 3;
}
