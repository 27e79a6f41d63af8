/**
 * Reads a dotted address without making anything: this runs for every endpoint of every service.
 *
 * @returns the address as an unsigned number, or −1 when `text` from `from` on is no canonical IPv4 address
 */
export function parseIPv4(text: string, from = 0): number {
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
    // No octet begins with a zero and goes on: some read it as octal.
    if (digit < 0 || digit > 9 || octet === 0) return -1;
    octet = octet === -1 ? digit : octet * 10 + digit;
    if (octet > 255) return -1;
  }
  return dots === 3 && octet !== -1 ? address * 256 + octet : -1;
}

const DOT = 46;
const ZERO = 48;
