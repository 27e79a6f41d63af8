import type { Variant } from "../../iptables/variant.ts";

/**
 * Why the tools or the kernel do not take a command.
 *
 * usage: the tool does not understand the line (exit 2). missing: what the line is about is not there (exit 1). kernel:
 * the kernel says no when the table is committed (nft: exit 4 and the line; legacy: exit 1 and the line of the COMMIT).
 */
export type Refusal =
  | { readonly form: "usage"; readonly words: string }
  | { readonly form: "no-target"; readonly chain: string; readonly go: boolean }
  | { readonly form: "missing"; readonly words: string }
  | {
      readonly form: "kernel";
      readonly operation: string;
      readonly errno: string;
      readonly object: string;
      readonly warning?: string;
    }
  /** The kernel's in nft, found by the tool itself in legacy. */
  | {
      readonly form: "busy" | "builtin-target";
      readonly operation: string;
      readonly errno: string;
      readonly object: string;
    };

/** When a refusal is noticed: while the lines are read, while they are taken in in their order, or by the kernel. */
export type RefusalPhase = "read" | "check" | "kernel";

export function refusalPhase({ form }: Refusal, variant: Variant): RefusalPhase {
  if (form === "kernel") return "kernel";
  if (form === "usage") return "read";
  return variant === "nft" && (form === "busy" || form === "builtin-target") ? "kernel" : "check";
}

/** The tool's exit code and what it writes to standard error, word for word as iptables 1.8.9. */
export function report(
  refusal: Refusal,
  where: { readonly tool: string; readonly variant: Variant; readonly line: number; readonly commit: number },
): { readonly exitCode: number; readonly stderr: string } {
  const { tool, line, commit } = where;
  return where.variant === "nft" ? reportNft(refusal, tool, line, commit) : reportLegacy(refusal, tool, line, commit);
}

function reportNft(refusal: Refusal, tool: string, line: number, commit: number) {
  const head = `${tool} v1.8.9 (nf_tables): `;
  switch (refusal.form) {
    case "usage":
      return usage(tool, head, refusal.words, line);
    case "no-target":
      return usage(tool, head, `Chain '${refusal.chain}' does not exist`, commit);
    case "missing":
      return { exitCode: 1, stderr: `${tool}: line ${line} failed: ${refusal.words}.\n` };
    default: {
      const warning = "warning" in refusal ? `${refusal.warning}\n` : "";
      const { operation, errno, object } = refusal;
      return { exitCode: 4, stderr: `${warning}${head}\nline ${line}: ${operation} failed (${errno}): ${object}\n` };
    }
  }
}

function reportLegacy(refusal: Refusal, tool: string, line: number, commit: number) {
  const head = `${tool} v1.8.9 (legacy): `;
  switch (refusal.form) {
    case "usage":
      return usage(tool, head, refusal.words, line);
    case "no-target": {
      const { chain, go } = refusal;
      const words = go
        ? `goto '${chain}' is not a chain`
        : `Couldn't load target \`${chain}':No such file or directory\n`;
      return usage(tool, head, words, line);
    }
    case "kernel":
      return {
        exitCode: 1,
        stderr: `${refusal.warning === undefined ? "" : `${refusal.warning}\n`}${tool}: line ${commit} failed\n`,
      };
    default:
      return { exitCode: 1, stderr: `${tool}: line ${line} failed\n` };
  }
}

function usage(tool: string, head: string, words: string, line: number) {
  const help = `Try \`${tool} -h' or '${tool} --help' for more information.`;
  return { exitCode: 2, stderr: `${head}${words}\nError occurred at line: ${line}\n${help}\n` };
}
