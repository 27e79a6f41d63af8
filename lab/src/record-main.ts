/**
 * `record-main.ts VERSION FOLDER`: writes what comes from kube-proxy into the folder, by the paths that it has in this
 * repository; the last line of its output is the full version. Its progress goes to stderr. What ipvs mode writes is
 * recorded in User-Mode Linux, where this same program runs as `record-main.ts VERSION FOLDER KUBE-PROXY`.
 */

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { kubeProxyProgram, kubernetesVersion } from "./control-plane/programs.ts";
import { recordFiles } from "./kube-proxy-files.ts";
import { type Recorded, recordRules, recordServers } from "./kube-proxy-rules.ts";
import { boot, guestProgram, missingForUml } from "./uml/boot.ts";

const RULES = "packages/testkit/fixtures";
const FILES = "packages/config/test/fixtures";
/** What the configuration reads of the followed release. */
const RELEASE = "packages/config/src/kubernetes.json";

/** The end of a hang; two dozen scenarios take minutes. */
const GUEST_MS = 3_600_000;

const [asked = "", out = "", inGuest] = process.argv.slice(2);
const version = kubernetesVersion(asked);
const progress = (line: string) => console.error(line);
const program = inGuest ?? (await kubeProxyProgram(version, progress));
const folder = await mkdtemp(join(tmpdir(), "fairlead-record-"));
try {
  if (inGuest !== undefined) {
    await saveRules(await recordServers(program, folder, progress));
  } else {
    const fixtures = fileURLToPath(new URL(`../../${FILES}`, import.meta.url));
    const files = await recordFiles({ program, version, fixtures, folder });
    for (const [file, text] of files) await save(`${FILES}/${file}`, text);
    await save(RELEASE, releaseOf(version, files.get("gates.tsv") ?? ""));
    await saveRules(await recordRules(program, folder, progress));
    await recordInGuest();
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
console.log(version);

/** Its files come into the same folder: the guest has the file system of this machine. */
async function recordInGuest(): Promise<void> {
  const missing = await missingForUml();
  if (missing !== undefined) return progress(`ipvs mode is not recorded: ${missing}`);
  progress("ipvs mode, in User-Mode Linux");
  const guest = await guestProgram(fileURLToPath(import.meta.url), [version, out, program]);
  const { exitCode, stderr } = await boot({ ...guest, timeoutMs: GUEST_MS });
  if (exitCode !== 0) throw new Error(`recording ipvs mode in User-Mode Linux ended with ${exitCode}: ${stderr}`);
}

async function saveRules(rules: Recorded): Promise<void> {
  for (const [file, text] of rules) await save(`${RULES}/${file}`, text);
}

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
