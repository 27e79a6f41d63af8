import { readdirSync, readFileSync } from "node:fs";
import type { IPFamily } from "../src/index.ts";

const folder = new URL("../../testkit/fixtures/golden/", import.meta.url);

export interface GoldenText {
  readonly name: string;
  readonly family: IPFamily;
  /** What iptables-save printed, without its comment lines. */
  readonly text: string;
}

/** All that iptables-save and ip6tables-save printed of the real kube-proxy's rules, those of its ipvs mode too. */
export function goldenTexts(): GoldenText[] {
  return readdirSync(folder).flatMap((name) => {
    if (name.endsWith(".ipvs")) return ipvsTexts(name);
    if (name.endsWith(".iptables")) return [{ name, family: "IPv4" as const, text: withoutComments(read(name)) }];
    if (name.endsWith(".ip6tables")) return [{ name, family: "IPv6" as const, text: withoutComments(read(name)) }];
    return [];
  });
}

/** These files have a part for each tool, begun by a comment with its name. */
function ipvsTexts(name: string): GoldenText[] {
  const parts = [...read(name).matchAll(/^# (ip6?tables)[^\n]*\n((?:[^#\n][^\n]*\n)+)/gm)];
  return parts.map(([, tool, text = ""]) => ({
    name: `${name} (${tool})`,
    family: tool === "ip6tables" ? "IPv6" : "IPv4",
    text,
  }));
}

function read(name: string): string {
  return readFileSync(new URL(name, folder), "utf8");
}

function withoutComments(text: string): string {
  return text.replaceAll(/^#.*\n/gm, "");
}
