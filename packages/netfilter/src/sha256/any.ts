import { sha256 as ofBytes } from "@noble/hashes/sha2.js";
import type { TextDigest } from "./digest.ts";

/** As node.ts, for engines that have no hash without waiting: browsers. */
export function sha256(text: string): string {
  return String.fromCharCode(...ofBytes(new TextEncoder().encode(text)));
}

export function startDigest(): TextDigest {
  const digest = ofBytes.create();
  const encoder = new TextEncoder();
  return {
    update: (text) => {
      digest.update(encoder.encode(text));
    },
    base64: () => btoa(String.fromCharCode(...digest.digest())),
  };
}
