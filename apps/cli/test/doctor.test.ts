import { type Argv, CommandError, type Runner } from "@fairlead/kernel";
import { describe, expect, test } from "vitest";
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

test("proxies of other network namespaces are none of this node's", async () => {
  const answers = new Map([
    ["ps -e -o pid=,comm=", "    7 kube-proxy\n   19 kube-proxy\n   23 kube-proxy\n"],
    ["readlink /proc/self/ns/net", "net:[4026531840]\n"],
    ["readlink /proc/7/ns/net", "net:[4026531840]\n"],
    ["readlink /proc/19/ns/net", "net:[4026532335]\n"],
  ]);
  const runner: Runner = {
    ...plainUser,
    run: async (argv, options) => {
      const stdout = answers.get(argv.join(" "));
      return stdout === undefined ? plainUser.run(argv, options) : { stdout, stderr: "" };
    },
  };
  const { out } = await fairlead(["doctor", "--cluster-cidr", "10.144.0.0/16"], {
    runner,
    env: { KUBECONFIG: "/does/not/exist" },
  });
  // Of the third one it cannot be told.
  expect(out).toContain("proxies on this node: kube-proxy (process 7), kube-proxy (process 23)");
});

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

describe("in userspace mode", () => {
  const bare: Runner = {
    ...plainUser,
    run: async (argv, options) => {
      if (argv.join(" ").includes("iptables")) throw new CommandError({ argv, reason: "not-found" });
      return plainUser.run(argv, options);
    },
    // biome-ignore lint/correctness/useYield: it fails before the first piece
    async *stream(argv) {
      throw argv.join(" ").includes("tables") ? new CommandError({ argv, reason: "not-found" }) : refused(argv);
    },
  };
  const doctor = (...args: readonly string[]) =>
    fairlead(["doctor", "--cluster-cidr", "10.144.0.0/16", ...args], {
      runner: bare,
      env: { KUBECONFIG: "/does/not/exist" },
    });

  test("iptables is needed, as by its rules", async () => {
    const { out, err } = await doctor("--mode", "userspace");
    expect(err).not.toContain("no plan can be made");
    expect(out).toContain("✗ iptables: not found");
  });

  test("with --userspace-only it is not", async () => {
    const { out } = await doctor("--mode", "userspace", "--agent-flag=--userspace-only");
    expect(out).toContain("✓ iptables: not found, and not needed");
  });
});
