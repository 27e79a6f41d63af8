import { createRunner, openNftables, type Runner } from "@fairlead/kernel";
import { createNamespace, namespaceSupport, netlinkIn } from "@fairlead/kernel/netns";
import { test } from "vitest";

const { CI = "" } = process.env;
const support = await namespaceSupport();

/** A node of its own: a network namespace with nothing in it. */
export interface TestKernel {
  /** For `nft`, which reads what we write. */
  readonly runner: Runner;
  readonly nft: Awaited<ReturnType<typeof openNftables>>;
}

/** A test on the real kernel: skipped with the reason where there can be no namespace, a failure in CI. */
export function kernelTest(name: string, body: (kernel: TestKernel) => Promise<void>): void {
  test(name, async ({ skip }) => {
    if (!support.ok) {
      if (CI !== "") throw new Error(`CI must run this: ${support.reason}`);
      skip(support.reason);
      return;
    }
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    const nft = await openNftables({ open: netlinkIn(namespace).transactions });
    try {
      await body({ runner, nft });
    } finally {
      await nft.close();
    }
  });
}
