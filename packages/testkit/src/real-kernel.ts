/** Tests on the real kernel, each in a network namespace of its own. */

import { createRunner, type Runner } from "@fairlead/kernel";
import { createNamespace, inside, type NetworkNamespace, namespaceSupport } from "@fairlead/kernel/netns";
import { test } from "vitest";

const support = await namespaceSupport();
const noEntering =
  support.ok && support.as === "user"
    ? "a plain user cannot enter a namespace; npm test runs this as the root of a user namespace"
    : undefined;

/** A node of its own: a network namespace with nothing in it. */
export interface TestKernel {
  readonly namespace: NetworkNamespace;
  /** Runs in it. */
  readonly runner: Runner;
}

interface KernelTestOptions {
  /** In a user namespace of its own, without rights over the machine. */
  readonly user?: true;
}

type Body = (kernel: TestKernel) => Promise<void>;

/** Skipped with the reason where there can be no namespace, a failure in CI. Processes by `runner` are in it. */
export function kernelTest(name: string, body: Body, options: KernelTestOptions = {}): void {
  testUnless(support.ok ? undefined : support.reason, name, async () => {
    await using namespace = await createNamespace(options);
    // Each process is one program less where this one is in the namespace.
    if (namespace.as === "root") return await inHere(namespace, body);
    return await body({
      namespace,
      runner: createRunner({ prefix: namespace.argvPrefix, env: namespace.env, timeoutMs: 0 }),
    });
  });
}

/** As `kernelTest`, for what opens sockets: this process is in the namespace. Skipped for a plain user. */
export function insideTest(name: string, body: Body): void {
  testUnless(support.ok ? noEntering : support.reason, name, async () => {
    await using namespace = await createNamespace();
    return await inHere(namespace, body);
  });
}

function inHere(namespace: NetworkNamespace, body: Body): Promise<void> {
  return inside(namespace, () => body({ namespace, runner: createRunner({ env: namespace.env, timeoutMs: 0 }) }));
}

function testUnless(reason: string | undefined, name: string, body: () => Promise<void>): void {
  test(name, async ({ skip }) => {
    if (reason === undefined) return await body();
    if (process.env["CI"]) throw new Error(`CI must run this: ${reason}`);
    return skip(reason);
  });
}
