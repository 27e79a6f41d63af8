import { readFileSync, writeFileSync } from "node:fs";
import { KERNELS, type KernelVersion } from "@fairlead/lab/qemu/kernel";
import { missingForCounting } from "@fairlead/lab/qemu/missing";
import { count, UNITS, type Unit } from "./measure.ts";
import { countsTable } from "./ratios.ts";

/** Counts all units on all kernels, and writes the tables into docs/fast-path.md. */

const PAGE = new URL("../../../docs/fast-path.md", import.meta.url);
const MARKS = ["<!-- counted: pnpm --filter @fairlead/e2e run cost -->", "<!-- end -->"] as const;

const missing = await missingForCounting();
if (missing !== undefined) {
  console.error(missing);
  process.exit(3);
}
const tables: string[] = [];
// The keys of both are what they were written with.
for (const version of Object.keys(KERNELS) as KernelVersion[]) {
  const table = countsTable(await count(version, Object.keys(UNITS) as Unit[]));
  console.log(table);
  tables.push(table);
}
const page = readFileSync(PAGE, "utf8");
const [before, rest = ""] = page.split(MARKS[0]);
const [, after] = rest.split(MARKS[1]);
if (after === undefined)
  throw new Error(`docs/fast-path.md has no place for the tables between ${MARKS.join(" and ")}`);
writeFileSync(PAGE, `${before}${MARKS[0]}\n\n${tables.join("\n\n")}\n\n${MARKS[1]}${after}`);
