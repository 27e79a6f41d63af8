import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Runner } from "@fairlead/kernel";
import { parse } from "yaml";
import type { Scratch } from "./scratch.ts";

/** An action as the workflow names it. */
export interface ActionUse {
  readonly repository: string;
  readonly commit: string;
  readonly inputs: Readonly<Record<string, string>>;
}

/** What the workflow's next jobs read. */
export interface Published {
  readonly published: boolean;
  readonly packages: readonly { readonly name: string; readonly version: string }[];
}

interface Step {
  readonly uses?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

const PUBLISH = /^(changesets\/action)\/publish@([0-9a-f]{40})$/;

/**
 * The action that publishes, out of the release workflow.
 *
 * @param workflow text of release.yaml
 * @throws Error when no step uses it
 */
export function publishAction(workflow: string): ActionUse {
  const { jobs }: { jobs: Readonly<Record<string, { readonly steps?: readonly Step[] }>> } = parse(workflow);
  for (const { uses, with: inputs = {} } of Object.values(jobs).flatMap(({ steps = [] }) => steps)) {
    const [, repository, commit] = PUBLISH.exec(uses ?? "") ?? [];
    if (repository === undefined || commit === undefined) continue;
    const texts = Object.entries(inputs).map(([name, value]) => [name, String(value)] as const);
    return { repository, commit, inputs: Object.fromEntries(texts) };
  }
  throw new Error("release.yaml has no step that uses changesets/action/publish");
}

/**
 * Runs the action itself, at the workflow's commit and with its inputs, as GitHub's runner does: inputs and files for
 * outputs come by the environment. Without releases and tags it asks nothing of GitHub.
 *
 * @param repository where its repository is cloned from: an address or a folder
 */
export async function runPublishAction(
  scratch: Scratch,
  { commit, inputs }: ActionUse,
  repository: string,
  env: Readonly<Record<string, string>>,
): Promise<Published> {
  const { runner } = scratch;
  const dir = join(scratch.dir, "action");
  await checkOut(runner, repository, commit, dir);
  const temporary = join(scratch.dir, "runner");
  await mkdir(temporary, { recursive: true });
  const output = join(temporary, "output");
  await writeFile(output, "");
  const given = Object.entries({ "github-token": "none", ...inputs }).map(
    ([name, value]) => [`INPUT_${name.replaceAll(" ", "_").toUpperCase()}`, value] as const,
  );
  const github = { GITHUB_OUTPUT: output, GITHUB_REPOSITORY: "fairlead-dev/fairlead", RUNNER_TEMP: temporary };
  // Some inputs have a hyphen, which a shell's variable cannot have; a process' may.
  await scratch.inCheckout(["node", join(dir, "dist/publish.js")], { ...env, ...github, ...Object.fromEntries(given) });
  const outputs = parseOutputs(await readFile(output, "utf8"));
  return {
    published: outputs.get("published") === "true",
    packages: JSON.parse(outputs.get("published-packages") ?? "[]"),
  };
}

async function checkOut(runner: Runner, repository: string, commit: string, dir: string): Promise<void> {
  await runner.run(["git", "init", "--quiet", dir]);
  await runner.run(["git", "-C", dir, "fetch", "--quiet", "--depth=1", repository, commit], { timeoutMs: 300_000 });
  await runner.run(["git", "-C", dir, "checkout", "--quiet", "FETCH_HEAD"]);
}

/** The file of outputs: `NAME<<DELIMITER`, lines, `DELIMITER`. */
export function parseOutputs(text: string): ReadonlyMap<string, string> {
  const outputs = new Map<string, string>();
  for (const [, name = "", , value = ""] of text.matchAll(/^([\w-]+)<<(\S+)\n([\s\S]*?)\n\2$/gm))
    outputs.set(name, value);
  return outputs;
}
