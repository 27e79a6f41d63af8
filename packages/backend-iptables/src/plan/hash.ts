import { hash } from "node:crypto";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** First 16 characters of base32(sha256(text)). */
export function chainHash(text: string): string {
  const digest = hash("sha256", text, "buffer");
  let name = "";
  for (let bit = 0; bit < 80; bit += 5) {
    const byte = bit >> 3;
    const word = ((digest[byte] ?? 0) << 8) | (digest[byte + 1] ?? 0);
    name += ALPHABET[(word >> (11 - (bit & 7))) & 31];
  }
  return name;
}
