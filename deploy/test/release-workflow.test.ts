import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { deployDir, repositoryDir } from "../src/paths.ts";

/** Every step of the release is rehearsed, prepares a job, or is one that docs/releasing.md gives to GitHub alone. */
interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: { readonly script?: string };
}

const PREPARES = ["actions/checkout", "pnpm/action-setup", "actions/setup-node", "pnpm install"];

/** What a step does: an action without its commit, or programs with their subcommands. */
function worksOf({ uses, run = "", with: { script = "" } = {} }: Step): readonly string[] {
  const lines = `${run}\n${script}`.replaceAll("\\\n", "").split("\n");
  const works = lines
    .filter((line) => line !== "" && !/^(?:echo|tag=)(?!.*(?:pnpm|helm))/.test(line))
    .flatMap(commandsIn);
  return uses === undefined ? works : [uses.replace(/@.*/, ""), ...works];
}

const COMMAND = /\b(pnpm|gh|helm|apt-get) (?:--silent )?(release [\w-]+|[\w:]+(?: (?:run|create|login))?)/g;

function commandsIn(line: string): readonly string[] {
  const found = Array.from(line.matchAll(COMMAND), ([, program, command]) => `${program} ${command}`);
  return found.length === 0 ? [line] : found;
}

async function workflowWorks(): Promise<ReadonlySet<string>> {
  const { jobs } = parse(await readFile(join(repositoryDir, ".github/workflows/release.yaml"), "utf8"));
  const steps = Object.values<{ readonly steps?: readonly Step[] }>(jobs).flatMap(({ steps: own = [] }) => own);
  return new Set(steps.flatMap(worksOf));
}

async function githubsOwn(): Promise<ReadonlySet<string>> {
  const page = await readFile(join(repositoryDir, "docs/releasing.md"), "utf8");
  const [, table = ""] = /^### Steps of GitHub alone\n(.*?)^##/ms.exec(page) ?? [];
  const cells = Array.from(table.matchAll(/^\| (`[^|]*) \|/gm), ([, cell = ""]) => cell);
  return new Set(cells.flatMap((cell) => Array.from(cell.matchAll(/`([^`]+)`/g), ([, work = ""]) => work)));
}

async function rehearsalSource(): Promise<string> {
  const folder = join(deployDir, "src/release/rehearse");
  const texts = (await readdir(folder)).map((name) => readFile(join(folder, name), "utf8"));
  return (await Promise.all(texts)).join("\n");
}

test("each step of the release is rehearsed, or one that only GitHub can do", async () => {
  const [works, own, source] = await Promise.all([workflowWorks(), githubsOwn(), rehearsalSource()]);
  const others = [...works].filter((work) => !PREPARES.includes(work) && !own.has(work));
  expect(others.toSorted()).toEqual([
    "changesets/action/publish",
    "pnpm image",
    "pnpm release krew",
    "pnpm release mode",
    "pnpm release notes",
    "pnpm release push-chart",
    "pnpm release push-image",
    "pnpm release:check",
    "pnpm release:publish",
    "pnpm release:version",
  ]);
  // The action, which the rehearsal takes out of the workflow (rehearsal.test.ts), runs pnpm release:publish.
  const started = others.filter((work) => !/\bpublish$/.test(work));
  // The last word of a command is an argument there.
  expect(started.filter((work) => !source.includes(`"${work.split(" ").at(-1)}"`))).toEqual([]);
});

test("the page names no step that the workflow does not have", async () => {
  const [works, own] = await Promise.all([workflowWorks(), githubsOwn()]);
  expect(own.size).toBeGreaterThan(5);
  expect([...own].filter((work) => !works.has(work))).toEqual([]);
});
