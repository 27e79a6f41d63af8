import type { ProgramText } from "@fairlead/inspect";

/**
 * What the programs get, each part under a comment with the command that takes it. All of them pass over such comments,
 * `ip -batch` too, so that a single part can be piped as it is.
 */
export function rulesText(texts: readonly ProgramText[]): string {
  return texts.map(({ argv, text }) => `# ${argv.join(" ")}${needs(text)}\n${text}`).join("");
}

/** Rules may count with named counters, which iptables-restore does not make. */
function needs(text: string): string {
  const names = new Set([...text.matchAll(/--nfacct-name +(\S+)/g)].map((found) => found[1]));
  return [...names].map((name) => `\n# needs: nfacct add ${name}`).join("");
}

/** The heading of a part: a comment with a program that plans are written for. */
const HEADING = /^# ((?:ip6?tables-restore|ipset|ipvsadm|ip) .*)$/;

/** Takes such a text apart again; a text without headings has no parts. */
export function cutPlanText(text: string): readonly ProgramText[] {
  const parts: { readonly argv: ProgramText["argv"]; text: string }[] = [];
  for (const line of text.split("\n")) {
    const [program, ...args] = HEADING.exec(line)?.[1]?.split(" ") ?? [];
    const last = parts.at(-1);
    if (program !== undefined) parts.push({ argv: [program, ...args], text: "" });
    else if (last !== undefined && !line.startsWith("#")) last.text += `${line}\n`;
  }
  return parts;
}
