import type { TestProject } from "vitest/node";
import { namespaceSupport } from "../src/netns/index.ts";
// Not from the index: what it needs of other packages is not resolved to their sources here.
import { createRunner } from "../src/runner/process-runner.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** Why tests on the real kernel cannot run here; "" where they can. */
    noKernel: string;
  }
}

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

/** Looks once, before all tests, whether the real kernel can be had. */
export default async function setup(project: TestProject): Promise<void> {
  const noKernel = (await whyNot()) ?? "";
  if (noKernel !== "") process.stderr.write(`skipped: all tests on the real kernel: ${noKernel}\n`);
  project.provide("noKernel", noKernel);
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
