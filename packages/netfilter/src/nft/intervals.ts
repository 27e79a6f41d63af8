import { addressHex, bytesOf, type Hex, hexOf } from "./hex.ts";
import type { SetElement } from "./model.ts";

/**
 * The elements of a set of intervals that holds the addresses of CIDRs.
 *
 * @param cidrs canonical, of one family, sorted, none within another one
 */
export function intervalElements(cidrs: readonly string[]): readonly SetElement[] {
  const elements: SetElement[] = [];
  for (const cidr of cidrs) {
    const [address = "", length = ""] = cidr.split("/");
    const first = addressHex(address);
    // One that begins where the last one ends goes on with it.
    if (elements.at(-1)?.key === first) elements.pop();
    else elements.push({ key: first });
    const behind = nextHex(lastOfPrefix(first, Number(length)));
    if (behind !== undefined) elements.push({ key: behind, intervalEnd: true });
  }
  return elements;
}

/** How an element is told from others of its set: where one interval ends another one may begin. */
export function elementKey({ key, intervalEnd }: Pick<SetElement, "key" | "intervalEnd">): string {
  return intervalEnd ? `${key} end` : key;
}

export function lastOfPrefix(first: Hex, length: number): Hex {
  const bytes = bytesOf(first);
  return hexOf(bytes.map((byte, at) => byte | (0xff >> Math.min(8, Math.max(0, length - 8 * at)))));
}

/** The value behind one; undefined behind the highest. */
export function nextHex(hex: Hex): Hex | undefined {
  const bytes = bytesOf(hex);
  for (let at = bytes.length - 1; at >= 0; at -= 1) {
    const byte = bytes[at] ?? 0;
    bytes[at] = byte + 1;
    if (byte < 0xff) return hexOf(bytes);
  }
  return undefined;
}
