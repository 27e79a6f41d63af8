import { fileURLToPath } from "node:url";
import { describe, test } from "vitest";
import { createRunner, type Runner } from "../src/index.ts";
import {
  createNamespace,
  inside as enter,
  type NamespaceSupport,
  type NetworkNamespace,
  namespaceSupport,
} from "../src/netns/index.ts";

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

const support = await namespaceSupport();

/** Why they cannot run here; undefined: they can. */
export const noKernel = await whyNot(support);

const noEntering =
  noKernel ?? (support.ok && support.as === "user" ? "a plain user enters a namespace only by a program" : undefined);

/** A namespace of a test's own; `signal` aborts where the test is given up. */
export interface TestKernel {
  readonly namespace: NetworkNamespace;
  readonly runner: Runner;
  readonly signal: AbortSignal;
}

/** Tests on the real kernel: skipped with the reason where they cannot run, a failure where CI is set. */
export function kernelSuite(name: string, define: () => void): void {
  suite(noKernel, name, define);
}

export function kernelTest(name: string, body: (kernel: TestKernel) => Promise<void>): void {
  kernelSuite("on the kernel", () =>
    test(name, async ({ signal }) => {
      // Each process of a test is one program less that way.
      if (noEntering === undefined) return await inside((kernel) => body({ ...kernel, signal }));
      await using namespace = await createNamespace();
      return await body({ namespace, runner: runnerIn(namespace), signal });
    }),
  );
}

/** As `kernelSuite`, for tests that are `inside`. */
export function insideSuite(name: string, define: () => void): void {
  suite(noEntering, name, define);
}

/** As `kernelTest`, while which this process is in the namespace. */
export function insideTest(name: string, body: (kernel: TestKernel) => Promise<void>): void {
  insideSuite("on the kernel", () => test(name, ({ signal }) => inside((kernel) => body({ ...kernel, signal }))));
}

/** Makes a namespace in which this process is meanwhile, which costs less than a process of its own. */
export async function inside<T>(work: (kernel: Omit<TestKernel, "signal">) => Promise<T>): Promise<T> {
  await using namespace = await createNamespace();
  return await enter(namespace, () => work({ namespace, runner: createRunner({ env: namespace.env, timeoutMs: 0 }) }));
}

/** For clients that have netlink to do their work by. */
export const noProcess: Runner = { ...createRunner(), run: async (argv) => refuse(argv), stream: refuse };

function refuse(argv: readonly string[]): never {
  throw new Error(`a process was started: ${argv.join(" ")}`);
}

export function runnerIn({ argvPrefix, env }: NetworkNamespace): Runner {
  return createRunner({ prefix: argvPrefix, env, timeoutMs: 0 });
}

export function program(name: string, ...args: readonly string[]): readonly [string, ...string[]] {
  const main = fileURLToPath(new URL("programs-main.ts", import.meta.url));
  return [process.execPath, "--conditions=@fairlead/source", "--no-warnings", main, name, ...args];
}

function suite(reason: string | undefined, name: string, define: () => void): void {
  if (reason === undefined) describe(name, define);
  else
    test(name, ({ skip }) => {
      if (CI !== "") throw new Error(`CI must run this: ${reason}`);
      skip(reason);
    });
}

async function whyNot(there: NamespaceSupport): Promise<string | undefined> {
  if (!there.ok) return there.reason;
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
