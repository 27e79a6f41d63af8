/** The tools with the rights of each reader. */

import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { CommandError } from "@fairlead/kernel";
import { networkCIDRs } from "@fairlead/lab/provider/netns/agent";
import { requireTool, tool } from "@fairlead/lab/tools/page-reader";
import { execa } from "execa";
import { behindFront } from "./operator.ts";
import {
  COMMAND_LINES,
  complaintOf,
  type Ended,
  type Ground,
  giveRights,
  groupOf,
  lackedIn,
  READERS,
  type Reader,
  type RightsOutcome,
  rightsTable,
  userOf,
} from "./readers.ts";
import { able, needs, type Scene, type Spec } from "./spec.ts";

export const rights: Spec = {
  name: "rights: every command as readers with narrow rights: what is missing is named, nothing else goes wrong",
  suite: "faults",
  about: ["cli"],
  eachFamily: false,
  unfit: needs("console", "the API server's pods are namespaces of this machine"),
  run: async (scene) => {
    for (const node of scene.nodes) await scene.pod({ node, app: "web" });
    await scene.service("web", { selector: { app: "web" }, ports: [{ port: 80 }] });
    await giveRights(scene);
    const { ground, access } = await openGround(scene);
    await demandEveryCommand(scene);
    const outcomes: RightsOutcome[] = [];
    const complaints: string[] = [];
    for (const command of Object.keys(COMMAND_LINES)) {
      const all = await Promise.all(READERS.map((reader) => outcomeOf(scene, command, reader, ground, access)));
      outcomes.push(...all.map(({ outcome }) => outcome));
      complaints.push(...all.flatMap(({ complaint }) => complaint ?? []));
    }
    if (complaints.length > 0) throw new Error(complaints.join("\n\n"));
    if (process.env["FAIRLEAD_RECORD_RIGHTS"] === "1") await writeRights(outcomes);
    else demandRecorded(outcomes, JSON.parse(await readFile(RECORDED, "utf8")));
    return { "command lines": String(outcomes.length) };
  },
};

/** What readers with narrow rights get of each command, as a run saw it: part of the project. */
export const RECORDED = fileURLToPath(new URL("../../rights.json", import.meta.url));
export const PAGE = fileURLToPath(new URL("../../../docs/tools.md", import.meta.url));

const BEGIN = "<!-- Made by FAIRLEAD_RECORD_RIGHTS=1 pnpm e2e --suite faults --spec rights. -->";
const END = "<!-- End of what is made. -->";

/** The page with the table of these outcomes. */
export function withTable(page: string, outcomes: readonly RightsOutcome[]): string {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`docs/tools.md has no passage between ${BEGIN} and ${END}`);
  return `${page.slice(0, begin + BEGIN.length)}\n\n${rightsTable(outcomes)}\n\n${page.slice(end)}`;
}

/** Where all lines are run; each has a file of its own. */
type Place = Omit<Ground, "file"> & { readonly folder: string };

async function openGround(scene: Scene): Promise<{ readonly ground: Place; readonly access: readonly string[] }> {
  await requireTool();
  const { namespace, nodes } = scene;
  const ground = { namespace, folder: await scene.folder(), node: nodes[0].name };
  return { ground, access: ["--kubeconfig", await behindFront(scene)] };
}

async function demandEveryCommand(scene: Scene): Promise<void> {
  const { err } = await runTool(scene, ["no-such-command"]);
  const listed = /^Commands: (.*)$/m.exec(err)?.[1]?.split(", ") ?? [];
  const known = Object.keys(COMMAND_LINES);
  if (listed.join() !== known.join()) throw new Error(`wanted a line for each of ${listed}; there are ${known}`);
}

async function outcomeOf(
  scene: Scene,
  command: string,
  reader: Reader,
  ground: Place,
  access: readonly string[],
): Promise<{ readonly outcome: RightsOutcome; readonly complaint: string | undefined }> {
  const line = COMMAND_LINES[command];
  const user = userOf(reader);
  if (line === undefined) throw new Error(`there is no line for ${command}`);
  const { mode } = scene.cluster;
  const cidrs = (flag: string, excluded: boolean) =>
    networkCIDRs(scene.cluster, { excluded }).flatMap((cidr) => [flag, cidr]);
  const configuration = ["--mode", mode, ...cidrs("--cluster-cidr", false), ...cidrs("--exclude-cluster-cidr", true)];
  const offline = command === "version" || command === "completion";
  const argv = [
    command,
    ...line.argv({ ...ground, file: join(ground.folder, `${user}.tar.gz`) }),
    ...(offline ? [] : [...access, "--as", user, "--as-group", "system:authenticated", "--as-group", groupOf(reader)]),
    ...(line.takesNamespace && reader.ofNamespace ? ["-n", ground.namespace] : []),
    ...(line.takesConfiguration && reader.configures ? configuration : []),
  ];
  const page = `api/service?target=${ground.namespace}/web`;
  const ended = command === "console" ? await runConsole(scene, argv, page) : await runTool(scene, argv);
  const wrong = complaintOf(ended);
  return {
    outcome: {
      command,
      reader: reader.name,
      code: ended.code,
      lacks: lackedIn(user, ended),
      says: firstLine(ended, ground),
    },
    complaint: wrong && `fairlead ${argv.join(" ")}: ${wrong}; exit code ${ended.code}\n${ended.err}\n${ended.out}`,
  };
}

/** Of what is missing, else of the answer, with names that are the same in every run. */
function firstLine({ out, err }: Ended, { namespace, node, folder }: Place): string {
  const said = err.split("\n").find((line) => line.includes("may not")) ?? out.split("\n", 1)[0] ?? "";
  return said
    .replaceAll(folder, "FOLDER")
    .replaceAll(namespace, "shop")
    .replaceAll(node, "node-a")
    .replaceAll(/http:\/\/127\.0\.0\.1:\d+(?:\/\S*)?/g, "SERVER");
}

function demandRecorded(came: readonly RightsOutcome[], recorded: readonly RightsOutcome[]): void {
  const textOf = ({ command, reader, code, lacks }: RightsOutcome) =>
    `${command} as ${reader}: ${code}, lacks ${lacks.join(", ") || "nothing"}`;
  const known = new Set(recorded.map(textOf));
  const other = came.map(textOf).filter((text) => !known.has(text));
  if (other.length === 0 && came.length === recorded.length) return;
  throw new Error(
    `e2e/rights.json says otherwise; FAIRLEAD_RECORD_RIGHTS=1 records what this run saw:\n${other.join("\n")}`,
  );
}

const ASK = fileURLToPath(new URL("../../../lab/src/tools/console-ask-main.ts", import.meta.url));

async function runTool({ cluster: { apiServer } }: Scene, argv: readonly string[]): Promise<Ended> {
  try {
    const { stdout, stderr } = await apiServer.run(["env", "NO_COLOR=1", process.execPath, tool, ...argv], {
      timeoutMs: 0,
    });
    return { code: 0, out: stdout, err: stderr };
  } catch (error) {
    if (!(error instanceof CommandError) || error.exitCode === undefined) throw error;
    return { code: error.exitCode, out: error.stdout, err: error.stderr };
  }
}

/**
 * Opens a console until its page has what the path gives, or the terminal says that it may not read what the page
 * needs.
 *
 * @returns code 3 where the page goes on waiting for services
 */
async function runConsole(scene: Scene, argv: readonly string[], path: string): Promise<Ended> {
  const { argvPrefix, env } = able(scene.cluster.apiServer.namespace);
  const [program = "", ...rest] = [...argvPrefix, "setpriv", "--pdeathsig", "KILL", process.execPath, tool, ...argv];
  const child = execa(program, rest, { env: { ...env, NO_COLOR: "1" }, stdin: "ignore", reject: false });
  const ended = child.then(() => "");
  const line = once(createInterface(child.stdout), "line").then(([text]) => String(text));
  const refused = new Promise<"refused">((resolve) => {
    createInterface(child.stderr).on("line", (text) => WITHOUT_SERVICES.test(text) && resolve("refused"));
  });
  const url = await Promise.race([line, ended]);
  const page = url === "" ? undefined : await Promise.race([asked(scene, url, path), refused, ended]);
  child.kill("SIGTERM");
  const { exitCode = 0, stdout, stderr } = await child;
  return { code: page === "refused" ? 3 : exitCode, out: stdout, err: stderr };
}

const WITHOUT_SERVICES = /^user \S+ may not (?:list|watch) (?:services|endpointslices)/;

async function asked({ cluster: { apiServer } }: Scene, url: string, path: string): Promise<"answered"> {
  const script = [process.execPath, "--no-warnings", "--conditions=@fairlead/source", ASK, url, path] as const;
  // Without an answer the console has ended, or says why.
  await apiServer.run(script, { timeoutMs: 0 }).catch(() => new Promise(() => {}));
  return "answered";
}

async function writeRights(outcomes: readonly RightsOutcome[]): Promise<void> {
  await writeFile(RECORDED, `${JSON.stringify(outcomes, undefined, 2)}\n`);
  await writeFile(PAGE, withTable(await readFile(PAGE, "utf8"), outcomes));
}
