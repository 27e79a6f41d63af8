/**
 * The tests of the real kernel that `npm test` runs: each mode's packets, one table of cases of each kernel client, an
 * agent's life. All other tests that need more than Node are `npm run test:all`. A new test goes there, unless a
 * newcomer's first run would lack it.
 *
 * Files, relative to the repository.
 */
export const CORE_TESTS: readonly string[] = [
  "e2e/test/core.kernel.test.ts",
  "apps/agent/test/running.kernel.test.ts",
  "packages/kernel/test/iptables/cases.kernel.test.ts",
  "packages/kernel/test/nftables/cases.kernel.test.ts",
  "packages/kernel/test/line-tools.kernel.test.ts",
  "packages/kernel/test/conntrack/conntrack.kernel.test.ts",
  "packages/kernel/test/addresses.kernel.test.ts",
  "packages/kernel/test/nfacct.kernel.test.ts",
  "packages/kernel/test/sysctl.kernel.test.ts",
];
