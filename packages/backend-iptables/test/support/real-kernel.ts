import { createNfacct, createRunner, type IPFamily, openIptables, type Runner, type Variant } from "@fairlead/kernel";
import { createNamespace, namespaceSupport } from "@fairlead/kernel/netns";
import { test } from "vitest";
import type { RulesPort } from "../../src/index.ts";

const { CI = "" } = process.env;
const support = await namespaceSupport();

/** A node of its own: a network namespace with nothing in it. */
export interface TestKernel {
  readonly runner: Runner;
  open(family: IPFamily, variant: Variant): Promise<RulesPort>;
  /** For `IptablesOptions.counters`. */
  counters(names: readonly string[]): Promise<ReadonlySet<string>>;
}

/** A test on the real kernel: skipped with the reason where there can be no namespace, a failure in CI. */
export function kernelTest(
  name: string,
  body: (kernel: TestKernel) => Promise<void>,
  { user }: { readonly user?: true } = {},
): void {
  test(name, async ({ skip }) => {
    if (!support.ok) {
      if (CI !== "") throw new Error(`CI must run this: ${support.reason}`);
      skip(support.reason);
      return;
    }
    await using namespace = await createNamespace({ ...(user && { user }) });
    const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    const nfacct = createNfacct(runner);
    await body({
      runner,
      open: (family, variant) => openIptables(runner, { family, variant }),
      counters: async (names) => {
        const made = await Promise.all(names.map(async (one) => ((await nfacct.ensure(one)).ok ? [one] : [])));
        return new Set(made.flat());
      },
    });
  });
}
