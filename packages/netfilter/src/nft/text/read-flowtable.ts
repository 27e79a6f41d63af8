import type { NftFlowtable } from "../model.ts";
import { readPriority } from "./read-chain.ts";
import { cut, type Token, TokenReader } from "./tokens.ts";

/** A flowtable, from what stands between its braces. */
export function readFlowtable(name: string, content: readonly Token[]): NftFlowtable {
  let priority = 0;
  let counter = false;
  let devices: readonly string[] = [];
  for (const line of cut(content, "\n", ";")) {
    const reader = new TokenReader(line);
    if (reader.take("hook", "ingress", "priority")) priority = readPriority(reader);
    else if (reader.take("devices", "=", "{")) devices = cut(reader.block(), ",", "\n").map(nameOf);
    else if (reader.take("counter")) counter = true;
  }
  return { name, priority, devices, ...(counter && { counter }) };
}

function nameOf(tokens: readonly Token[]): string {
  return tokens.map(({ text }) => text).join("");
}
