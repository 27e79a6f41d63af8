import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { kubeconfig } from "@fairlead/lab/control-plane/control-plane";
import { networkCIDRs } from "@fairlead/lab/provider/netns/agent";
import { requireTool } from "@fairlead/lab/tools/fairlead";
import { startPodFront } from "@fairlead/lab/tools/pods/front";
import { able, needs } from "../needs.ts";
import type { Scene } from "../scene.ts";
import type { Spec } from "../spec.ts";
import { COMMAND_LINES, type Ground } from "./commands.ts";
import { complaintOf, type Ended, lackedIn, type RightsOutcome } from "./outcome.ts";
import { giveRights, groupOf, READERS, type Reader, userOf } from "./readers.ts";
import { RECORDED, writeRights } from "./record.ts";
import { runConsole, runTool } from "./run-as.ts";

/** Every command, as users with narrow rights: what docs/tools.md says of each is what it does. */
export const rights: Spec = {
  name: "rights: every command as readers with narrow rights: what is missing is named, nothing else goes wrong",
  suite: "faults",
  about: ["cli"],
  eachFamily: false,
  // What is compared is the whole cluster.
  alone: true,
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

/** Where all lines are run; each has a file of its own. */
type Place = Omit<Ground, "file"> & { readonly folder: string };

async function openGround(scene: Scene): Promise<{ readonly ground: Place; readonly access: readonly string[] }> {
  await requireTool();
  const { cluster, namespace, nodes } = scene;
  const { apiServer } = cluster;
  const folder = await mkdtemp(join(tmpdir(), `fairlead-e2e-${process.pid}-rights-`));
  scene.later(() => rm(folder, { recursive: true }));
  const pids = new Map(cluster.nodes.map((node) => [node.name, able(node.namespacePid)] as const));
  const settings = { server: apiServer.url, token: apiServer.token, nodes: pids };
  const front = await startPodFront(able(apiServer.namespace), settings);
  scene.later(async () => front[Symbol.asyncDispose]());
  const file = join(folder, "kubeconfig");
  // The way to the real server has the administrator's token: who is impersonated has their own rights.
  await writeFile(file, kubeconfig({ server: front.url }));
  return { ground: { namespace, folder, node: nodes[0].name }, access: ["--kubeconfig", file] };
}

/** @throws Error for a command of the program that has no line here */
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
