import { readFile, writeFile } from "node:fs/promises";
import { kubeProxyProgram } from "@fairlead/lab/control-plane/programs";
import { KERNELS, type KernelVersion } from "@fairlead/lab/qemu/kernel-versions";
import { missingForCounting } from "@fairlead/lab/qemu/missing";
import { type Counted, readCounted, withGuest, writeCounted } from "./counted.ts";
import { GUESTS } from "./guests.ts";
import { PAGE, withTables } from "./page.ts";
import { missedBudgets } from "./targets.ts";

const KUBE_PROXY = "v1.37";
const LACKING = 3;

/**
 * Counts in all guests on all kernels, or in those whose names match; keeps the counts, writes the tables of
 * docs/fast-path.md, and says which budgets are exceeded.
 *
 * @param spec of `KERNEL GUEST`, such as `6.12 one node 10`
 * @returns an exit code
 */
export async function runCostSuite(spec: RegExp | undefined, progress: (line: string) => void): Promise<number> {
  const missing = await missingForCounting(["iptables-legacy", "nfacct", "ipset", "ipvsadm"]);
  if (missing !== undefined) {
    progress(missing);
    return LACKING;
  }
  // The keys are what it was written with.
  const versions = Object.keys(KERNELS) as KernelVersion[];
  const wanted = versions.flatMap((version) => GUESTS.map((guest) => ({ version, guest })));
  const chosen = wanted.filter(({ version, guest }) => spec?.test(`${version} ${guest.name}`) ?? true);
  const kubeProxy = await kubeProxyProgram(KUBE_PROXY, progress);
  let counted: Counted = await readCounted();
  for (const { version, guest } of chosen) {
    const started = performance.now();
    const { release, counts } = await guest.count(version, kubeProxy);
    progress(`${version} ${guest.name}: ${Math.round((performance.now() - started) / 1000)} s`);
    counted = withGuest(counted, version, release, guest.name, counts);
    await writeCounted(counted);
  }
  await writeFile(PAGE, withTables(await readFile(PAGE, "utf8"), counted));
  const missed = missedBudgets(counted);
  for (const line of missed) progress(line);
  return missed.length === 0 ? 0 : 1;
}
