const [COLON, DOT, ZERO, NINE, A, F, CASE] = [0x3a, 0x2e, 0x30, 0x39, 0x61, 0x66, 0x20] as const;

/**
 * Whether a text may be an address that is not written as `parseAddress` of core writes it: with leading zeros, an IPv6
 * address that is not compressed, or one that stands for an IPv4 address. Large lists have hundreds of thousands that
 * are.
 */
export function isOddAddress(bytes: Buffer, from: number, to: number): boolean {
  let [isIPv6, ledByZero] = [false, false];
  for (let at = from; at < to; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte === COLON) isIPv6 = true;
    else if (byte === ZERO) ledByZero ||= isFirst(bytes, at, from) && isDigit(bytes[at + 1] ?? 0);
    else if (byte !== DOT && !isDigit(byte) && !isHexLetter(byte)) return false;
  }
  return isIPv6 ? !PLAIN_IPV6.test(bytes.toString("latin1", from, to)) : ledByZero;
}

/** Eight groups, or fewer and a gap for two at least; none begins with a zero. */
const PLAIN_IPV6 = plainIPv6("[1-9a-f][0-9a-f]{0,3}");

function plainIPv6(group: string): RegExp {
  const groups = `${group}(?::${group})*`;
  return new RegExp(`^(?:${group}(?::${group}){7}|(?=(?:[^:]*:){2,6}[^:]*$)${groups}::(?:${groups})?)$`);
}

function isFirst(bytes: Buffer, at: number, from: number): boolean {
  return at === from || bytes[at - 1] === DOT;
}

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= NINE;
}

function isHexLetter(byte: number): boolean {
  const small = byte | CASE;
  return small >= A && small <= F;
}
