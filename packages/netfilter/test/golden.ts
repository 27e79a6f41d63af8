import { readdirSync, readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import type { IPFamily } from "../src/index.ts";

const folders = ["golden", "golden-more"].map((name) => new URL(`../../testkit/fixtures/${name}/`, import.meta.url));

export interface GoldenText {
  readonly name: string;
  readonly family: IPFamily;
  /** What iptables-save printed, without its comment lines. */
  readonly text: string;
}

/** All that iptables-save and ip6tables-save printed of the real kube-proxy's rules, those of its ipvs mode too. */
export function goldenTexts(): GoldenText[] {
  return folders.flatMap((folder) => readdirSync(folder).flatMap((name) => textsOf(name, new URL(name, folder))));
}

function textsOf(name: string, file: URL): GoldenText[] {
  if (name.endsWith(".ipvs")) return ipvsTexts(name, readFileSync(file, "utf8"));
  const family = /\.ip(6?)tables(?:\.gz)?$/.exec(name)?.[1];
  if (family === undefined) return [];
  const bytes = readFileSync(file);
  const text = (name.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString();
  return [{ name, family: family === "6" ? "IPv6" : "IPv4", text: text.replaceAll(/^#.*\n/gm, "") }];
}

/** These files have a part for each tool, begun by a comment with its name. */
function ipvsTexts(name: string, file: string): GoldenText[] {
  const parts = [...file.matchAll(/^# (ip6?tables)[^\n]*\n((?:[^#\n][^\n]*\n)+)/gm)];
  return parts.map(([, tool, text = ""]) => ({
    name: `${name} (${tool})`,
    family: tool === "ip6tables" ? "IPv6" : "IPv4",
    text,
  }));
}
