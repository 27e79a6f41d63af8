import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { deployDir, repositoryDir } from "../src/paths.ts";

/** What others publish and a build takes is named by its contents: a tag can be moved, a digest cannot. */
const githubDir = join(repositoryDir, ".github");

/** `uses: owner/name@COMMIT # v1.2.3`, of which Renovate keeps both. */
const PINNED = /^\s*-?\s*uses: ([\w.-]+\/[\w./-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)$/;

async function workflows(): Promise<readonly (readonly [name: string, text: string])[]> {
  const names = (await readdir(githubDir, { recursive: true })).filter((name) =>
    /^(?:workflows|actions)\/.*\.ya?ml$/.test(name),
  );
  return Promise.all(names.map(async (name) => [name, await readFile(join(githubDir, name), "utf8")] as const));
}

async function actionLines(): Promise<readonly string[]> {
  const lines = (await workflows()).flatMap(([, text]) => text.split("\n"));
  return lines.filter(
    (line) => /\buses:/.test(line) && !/ uses: \.\/\.github\/(?:actions\/[\w-]+|workflows\/ci\.yaml)$/.test(line),
  );
}

test("actions are pinned by commit, with the version in words", async () => {
  const lines = await actionLines();
  expect(lines.length).toBeGreaterThan(20);
  expect(lines.filter((line) => !PINNED.test(line))).toEqual([]);
});

test("an action has one commit in all workflows", async () => {
  const commits = new Map<string, Set<string>>();
  for (const line of await actionLines()) {
    const [, action = "", commit = "", version = ""] = PINNED.exec(line) ?? [];
    commits.set(action, (commits.get(action) ?? new Set()).add(`${commit} ${version}`));
  }
  expect([...commits].filter(([, all]) => all.size > 1)).toEqual([]);
});

test.each([
  "      - uses: actions/checkout@v5",
  "      - uses: actions/checkout@main # v5.0.0",
  "      - uses: actions/checkout@08c6903",
  `      - uses: actions/checkout@${"0".repeat(40)}`,
  `      - uses: actions/checkout@${"0".repeat(40)} # v5`,
  "      - uses: docker://alpine:3",
])("%s is not a pin", (line) => {
  expect(PINNED.test(line)).toBe(false);
});

test("no checkout leaves its token in the folder, where what runs later could read it", async () => {
  for (const [name, text] of await workflows()) {
    const checkouts = text.match(/uses: actions\/checkout@.*\n.*/g) ?? [];
    for (const checkout of checkouts) expect(checkout, name).toContain("persist-credentials: false");
  }
});

test("nothing that a run is given becomes part of a command, but by the environment", async () => {
  for (const [name, text] of await workflows()) {
    const given = commandsOf(parse(text)).filter((command) => /\$\{\{ *(?:github|inputs|matrix|needs)\b/.test(command));
    expect(given, name).toEqual([]);
  }
});

/** All that `run` says, in jobs and actions. */
function commandsOf(node: unknown): readonly string[] {
  if (typeof node !== "object" || node === null) return [];
  return Object.entries(node).flatMap(([key, value]) =>
    key === "run" && typeof value === "string" ? [value] : commandsOf(value),
  );
}

test("what is published is made without caches, which other workflows write", async () => {
  const [[, release = ""] = []] = (await workflows()).filter(([name]) => name === "workflows/release.yaml");
  expect(release).toContain("package-manager-cache: false");
  expect(release).not.toMatch(/cache: pnpm|actions\/cache@|github\/actions\/setup/);
});

test("images that ours is built from are pinned by digest", async () => {
  const dockerfile = await readFile(join(deployDir, "image/Dockerfile"), "utf8");
  const images = new Map([...dockerfile.matchAll(/^ARG (\w+_IMAGE)=(.*)$/gm)].map(([, name, image]) => [name, image]));
  expect(images.size).toBe(2);
  for (const image of images.values()) expect(image).toMatch(/^[a-z]+:[\w.-]+@sha256:[0-9a-f]{64}$/);
  const from = [...dockerfile.matchAll(/^FROM (?:--platform=\S+ )?(\S+)/gm)].map(([, image = ""]) => image);
  expect(from).toHaveLength(2);
  for (const image of from) expect([...images.keys()].map((name) => `\${${name}}`)).toContain(image);
});

test("Renovate keeps both up to date", async () => {
  const { extends: presets } = JSON.parse(await readFile(join(repositoryDir, "renovate.json"), "utf8"));
  expect(presets).toEqual(
    expect.arrayContaining(["config:recommended", "helpers:pinGitHubActionDigestsToSemver", "docker:pinDigests"]),
  );
});

interface Job {
  readonly needs?: string | readonly string[];
  readonly uses?: string;
  readonly permissions?: Readonly<Record<string, string>>;
  readonly steps?: readonly { readonly run?: string }[];
}

async function releaseJobs(): Promise<ReadonlyMap<string, Job>> {
  const { jobs } = parse(await readFile(join(githubDir, "workflows/release.yaml"), "utf8"));
  return new Map(Object.entries(jobs));
}

function waitsFor(jobs: ReadonlyMap<string, Job>, name: string): readonly string[] {
  const { needs = [] } = jobs.get(name) ?? {};
  return [needs].flat().flatMap((one) => [one, ...waitsFor(jobs, one)]);
}

test("nothing is published before CI has passed on the same commit", async () => {
  const jobs = await releaseJobs();
  expect(jobs.get("ci")?.uses).toBe("./.github/workflows/ci.yaml");
  const publishing = [...jobs].filter(([, { permissions = {} }]) => permissions["id-token"] === "write");
  expect(publishing.length).toBeGreaterThan(3);
  for (const [name] of publishing) expect([name, waitsFor(jobs, name)]).toEqual([name, expect.arrayContaining(["ci"])]);
});

test("the tag comes last", async () => {
  const jobs = await releaseJobs();
  const tagging = [...jobs].filter(([, { steps = [] }]) => steps.some(({ run }) => run?.includes("gh release create")));
  expect(tagging.map(([name]) => name)).toEqual(["release"]);
  for (const name of ["packages", "image", "chart"]) expect(waitsFor(jobs, "release")).toContain(name);
});

test("the release pull request, for which GitHub starts no workflow, has CI", async () => {
  const version = (await releaseJobs()).get("version");
  expect(version?.permissions).toMatchObject({ actions: "write" });
  expect(commandsOf(version).join("\n")).toContain("gh workflow run ci.yaml --ref changeset-release/main");
  const ci = parse(await readFile(join(githubDir, "workflows/ci.yaml"), "utf8"));
  expect(Object.keys(ci.on)).toEqual(expect.arrayContaining(["pull_request", "workflow_call", "workflow_dispatch"]));
});

/** Every step of the release is rehearsed, prepares a job, or is one that docs/releasing.md leaves to GitHub. */
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
  const [, table = ""] = /^### Steps of GitHub only\n(.*?)^##/ms.exec(page) ?? [];
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
