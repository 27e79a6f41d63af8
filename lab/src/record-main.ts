/**
 * `record-main.ts VERSION FOLDER`: writes what comes from kube-proxy into the folder, by the paths that it has in this
 * repository; the last line of its output is the full version. Its progress goes to stderr.
 */

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { kubeProxyProgram, kubernetesVersion } from "./control-plane/programs.ts";
import { recordFiles } from "./kube-proxy-files.ts";
import { recordRules } from "./kube-proxy-rules.ts";

const RULES = "packages/testkit/fixtures";
const FILES = "packages/config/test/fixtures";
/** What the configuration reads of the followed release. */
const RELEASE = "packages/config/src/kubernetes.json";

const [asked = "", out = ""] = process.argv.slice(2);
const version = kubernetesVersion(asked);
const progress = (line: string) => console.error(line);
const program = await kubeProxyProgram(version, progress);
const folder = await mkdtemp(join(tmpdir(), "fairlead-record-"));
try {
  const fixtures = fileURLToPath(new URL(`../../${FILES}`, import.meta.url));
  const files = await recordFiles({ program, version, fixtures, folder });
  for (const [file, text] of files) await save(`${FILES}/${file}`, text);
  await save(RELEASE, releaseOf(version, files.get("gates.tsv") ?? ""));
  for (const [file, text] of await recordRules(program, folder, progress)) await save(`${RULES}/${file}`, text);
} finally {
  await rm(folder, { recursive: true, force: true });
}
console.log(version);

async function save(path: string, text: string): Promise<void> {
  const file = join(out, path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
}

function releaseOf(version: string, gates: string): string {
  const names = gates
    .split("\n")
    .flatMap((line) => line.split("\t", 1))
    .filter((name) => name !== "");
  const release = version.replace(/^v(\d+\.\d+)\..*$/, "$1");
  return `${JSON.stringify({ release, gates: names }, null, 2)}\n`;
}
