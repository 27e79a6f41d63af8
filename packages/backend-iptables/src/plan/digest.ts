import { hash } from "node:crypto";

/** Stands for the rules of a chain, given as iptables-save prints them less `-A CHAIN `. */
export function digestOf(rules: readonly string[]): string {
  return hash("sha256", rules.join("\n"), "base64");
}
