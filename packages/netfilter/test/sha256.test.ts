import { expect, test } from "vitest";
import * as any from "../src/sha256/any.ts";
import * as node from "../src/sha256/node.ts";

// Around the ends of blocks of 64 bytes, and with characters of more than one byte.
test.each([0, 1, 54, 55, 56, 63, 64, 65, 119, 120, 1_000])(
  "any engine's hash is Node's, of %d characters",
  (length) => {
    for (const character of ["a", "ü", "語"]) {
      const text = character.repeat(length);
      const expected = node.sha256(text);
      expect(expected).toHaveLength(32);
      expect(any.sha256(text)).toBe(expected);
      for (const digest of [any.startDigest(), node.startDigest()]) {
        for (const piece of [text.slice(0, length / 2), text.slice(length / 2)]) digest.update(piece);
        expect(digest.base64()).toBe(btoa(expected));
      }
    }
  },
);
