import type { ProgramText } from "@fairlead/inspect";

/**
 * What the programs get, each part under a comment with the command that takes it. All of them pass over such comments,
 * `ip -batch` too, so that a single part can be piped as it is.
 */
export function rulesText(texts: readonly ProgramText[]): string {
  return texts
    .map(({ argv, pieces }) => {
      const text = pieces.join("");
      return `# ${argv.join(" ")}${needs(text)}\n${text}`;
    })
    .join("");
}

/** Rules may count with named counters, which iptables-restore does not make. */
function needs(text: string): string {
  const names = new Set([...text.matchAll(/--nfacct-name +(\S+)/g)].map((found) => found[1]));
  return [...names].map((name) => `\n# needs: nfacct add ${name}`).join("");
}
