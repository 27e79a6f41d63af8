import { type Argv, CommandError, type Runner } from "@fairlead/kernel";
import { expect, test } from "vitest";
import { fairlead } from "./support/run.ts";

/** A host on which a plain user looks: programs are there, and the kernel refuses. */
const refused = (argv: Argv) => new CommandError({ argv, reason: "exit", exitCode: 1, stderr: "Permission denied" });
const plainUser: Runner = {
  run: async (argv) => {
    if (argv.includes("--version")) return { stdout: "", stderr: "" };
    throw refused(argv);
  },
  // biome-ignore lint/correctness/useYield: it fails before the first piece
  async *stream(argv) {
    throw refused(argv);
  },
};

test("what a plain user may not look at is unknown, never good", async () => {
  const { out, code } = await fairlead(["doctor", "--cluster-cidr", "10.144.0.0/16", "--mode", "ipvs"], {
    runner: plainUser,
    env: { KUBECONFIG: "/does/not/exist" },
  });
  expect(out).not.toContain("✓");
  expect(out).toContain("✗ iptables: nft, but its rules may not be read");
  for (const check of ["policies", "connection tracking", "ipset", "proxies on this node", "CIDRs"]) {
    expect(out).toMatch(new RegExp(`^\\? ${check}: .*\\n    → `, "m"));
  }
  expect(code).toBe(1);
});
