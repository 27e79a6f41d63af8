import { describe, test } from "vitest";
import { createRunner } from "../src/index.ts";
import { namespaceSupport } from "../src/netns/index.ts";

const { CI = "" } = process.env;

const TOOLS = [
  "iptables-nft",
  "iptables-legacy",
  "ip6tables-nft",
  "ip6tables-legacy",
  "conntrack",
  "nfacct",
  "ip",
  "flock",
];

/** Why they cannot run here; undefined: they can. */
export const noKernel = await whyNot();

/** Tests on the real kernel: skipped with the reason where they cannot run, a failure where CI is set. */
export function kernelSuite(name: string, define: () => void): void {
  if (noKernel === undefined) describe(name, define);
  else
    test(name, ({ skip }) => {
      if (CI !== "") throw new Error(`CI must run this: ${noKernel}`);
      skip(noKernel);
    });
}

/** A single one of them; `signal` aborts where the test is given up. */
export function kernelTest(name: string, body: (test: { readonly signal: AbortSignal }) => Promise<void>): void {
  kernelSuite("on the kernel", () => test(name, ({ signal }) => body({ signal })));
}

async function whyNot(): Promise<string | undefined> {
  const support = await namespaceSupport();
  if (!support.ok) return support.reason;
  const runner = createRunner();
  for (const tool of TOOLS) {
    const missing = await runner.run([tool, tool === "ip" ? "-V" : "--version"]).then(
      () => false,
      (error: unknown) => error instanceof Error && error.message.endsWith("is not installed"),
    );
    if (missing) return `${tool} is not installed (apt-get install iptables conntrack nfacct iproute2 util-linux)`;
  }
  return undefined;
}
