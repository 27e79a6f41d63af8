import { readFile, writeFile } from "node:fs/promises";
import type { IPFamily } from "@fairlead/core";

/** What a run of specs that all passed was about. */
export interface TestedRun {
  /** `2026-11-23` */
  readonly date: string;
  /** Of the control plane, `v1.36.3`. */
  readonly kubernetes: string;
  /** Of the nodes, `6.1.140`. */
  readonly kernel: string;
  readonly provider: string;
  readonly mode: string;
  /** The pod networks. */
  readonly networks: readonly string[];
  readonly families: readonly IPFamily[];
  readonly suites: readonly string[];
  /** How many passed. */
  readonly specs: number;
}

/** With a run in the place of the earlier one of the same kind; in a fixed order. */
export function withRun(runs: readonly TestedRun[], run: TestedRun): readonly TestedRun[] {
  const others = runs.filter((one) => kindOf(one) !== kindOf(run));
  return [...others, run].sort((one, other) => (kindOf(one) < kindOf(other) ? -1 : 1));
}

function kindOf({ kubernetes, kernel, provider, mode, networks, families, suites }: TestedRun): string {
  return JSON.stringify([kubernetes, kernel, provider, mode, networks, families, suites]);
}

/** The page that lists them. */
export function testedPage(runs: readonly TestedRun[]): string {
  const rows = runs.map(({ kubernetes, kernel, provider, mode, networks, families, suites, specs, date }) => {
    const lists = [networks, families, suites].map((names) => names.join(", "));
    return `| ${[kubernetes, kernel, PROVIDERS[provider] ?? provider, mode, ...lists, specs, date].join(" | ")} |`;
  });
  return `# What is tested

<!-- Made by \`pnpm e2e --record\`. -->

Runs of the specs on a real API server and endpoint slice controller in which every spec passed, the latest of each kind. A run adds itself with
\`pnpm e2e --record\` ([testing.md](testing.md#run-specs-on-a-cluster)); no row is written by hand. Other versions may work: the chart asks for
Kubernetes 1.29, nftables mode for Linux 5.13.

| Kubernetes | Linux | nodes | mode | pod networks | IP families | suites | specs | date |
| ---------- | ----- | ----- | ---- | ------------ | ----------- | ------ | ----- | ---- |
${rows.join("\n")}
`;
}

const PROVIDERS: Readonly<Record<string, string>> = {
  netns: "network namespaces",
  kind: "kind",
};

/** None where there is no file yet. */
export async function readRuns(file: string): Promise<readonly TestedRun[]> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "[]";
    throw error;
  });
  return JSON.parse(text);
}

/** Adds a run to the recorded ones, and writes the page anew. */
export async function recordRun(
  run: TestedRun,
  files: { readonly runs: string; readonly page: string },
): Promise<void> {
  const runs = withRun(await readRuns(files.runs), run);
  await writeFile(files.runs, `${JSON.stringify(runs, undefined, 2)}\n`);
  await writeFile(files.page, testedPage(runs));
}
