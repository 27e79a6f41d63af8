/**
 * How large the payloads of the nft variant should be: a full sync onto an empty kernel with each size, in a network
 * namespace of its own. Prints the CPU time of the tools (cutime and cstime of /proc/self/stat, in steps of 10 ms).
 *
 *   pnpm exec node --conditions=@fairlead/source bench/batches.bench.ts [services] [endpoint chains/service chains]…
 */
import { readFile } from "node:fs/promises";
import { createRunner, openIptables } from "@fairlead/kernel";
import { createNamespace } from "@fairlead/kernel/netns";
import { BATCH } from "../src/commit.ts";
import { createIptablesBackend } from "../src/index.ts";
import { BenchPlan } from "./cluster.ts";

const [services = "10000", ...given] = process.argv.slice(2);
const sizes = given.length > 0 ? given : ["200/100", "500/250", "1000/500", "2000/1000"];
const plan = new BenchPlan(Number(services), 10);

for (const size of sizes) {
  const [endpointChains = 0, serviceChains = 0] = size.split("/").map(Number);
  Object.assign(BATCH, { endpointChains, serviceChains });
  await using namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
  const port = await openIptables(runner, { family: "IPv4", variant: "nft" });
  const before = await childrenSeconds();
  const start = performance.now();
  await createIptablesBackend(port).sync(plan);
  const seconds = (performance.now() - start) / 1000;
  const after = await childrenSeconds();
  const [user, system] = [after.user - before.user, after.system - before.system];
  console.log(`${size}: ${seconds.toFixed(1)} s, tools' CPU ${user.toFixed(1)} s user, ${system.toFixed(1)} s system`);
}

async function childrenSeconds(): Promise<{ readonly user: number; readonly system: number }> {
  const stat = await readFile("/proc/self/stat", "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return { user: Number(fields[13]) / 100, system: Number(fields[14]) / 100 };
}
