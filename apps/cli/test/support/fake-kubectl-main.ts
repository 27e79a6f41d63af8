import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

/**
 * A kubectl for some nodes with an agent each, as a process. FAKE_KUBECTL names a folder: what it is called with goes
 * into calls.jsonl there, what the node's programs and its agent answer comes from state.json.
 */
export interface FakeCluster {
  readonly pods: readonly {
    readonly node: string;
    /** `name=value`, several with commas between. */
    readonly label: string;
    readonly name: string;
    readonly container: string;
  }[];
  /** What programs print, by the whole command or by its first word. */
  readonly programs: Readonly<Record<string, string>>;
  /** What they print otherwise once the agent was told to do a full sync. */
  readonly synced?: Readonly<Record<string, string>>;
  /** What the agent answers, by path. */
  readonly endpoint: Readonly<Record<string, unknown>>;
}

const { FAKE_KUBECTL: folder = "" } = process.env;
const argv = process.argv.slice(2);
appendFileSync(join(folder, "calls.jsonl"), `${JSON.stringify(argv)}\n`);
const state: FakeCluster = JSON.parse(readFileSync(join(folder, "state.json"), "utf8"));
const [verb = "", ...args] = argv.filter((one) => !/^--(?:kubeconfig|context)=/.test(one));
const verbs = new Map([
  ["get", get],
  ["exec", exec],
  ["port-forward", forward],
]);
(verbs.get(verb) ?? (() => fail(`error: unknown command ${JSON.stringify(verb)}`, 1)))();

function get(): void {
  const node = /spec\.nodeName=([^,]+)/.exec(args.join(" "))?.[1];
  const selector = args.find((arg) => arg.startsWith("--selector="))?.slice("--selector=".length);
  const [wanted, without] = selector?.split(",!") ?? [];
  const found = state.pods.filter(({ label, node: of }) => {
    const labels = label.split(",");
    const isLeftOut = labels.some((one) => one.startsWith(`${without}=`));
    return (node === undefined || of === node) && labels.some((one) => one === wanted) && !isLeftOut;
  });
  const items = found.map(({ name, container, node: nodeName }) => {
    return { metadata: { namespace: "kube-system", name }, spec: { nodeName, containers: [{ name: container }] } };
  });
  process.stdout.write(JSON.stringify({ items }));
}

function exec(): void {
  const command = args.slice(args.indexOf("--") + 1);
  if (command.join(" ") === "fairlead __full-sync" && state.synced !== undefined) {
    const synced: FakeCluster = { ...state, programs: { ...state.programs, ...state.synced } };
    writeFileSync(join(folder, "state.json"), JSON.stringify(synced));
    return;
  }
  const printed = state.programs[command.join(" ")] ?? state.programs[command[0] ?? ""];
  if (printed === undefined) fail(`exec failed: ${command[0]}: No such file or directory`, 127);
  else process.stdout.write(printed);
}

function forward(): void {
  const server = createServer(({ url = "" }, response) => {
    response.writeHead(url in state.endpoint ? 200 : 404);
    const answer = state.endpoint[url];
    response.end(typeof answer === "string" ? answer : JSON.stringify(answer));
  });
  server.listen(0, "127.0.0.1", () => {
    const address = server.address();
    const port = typeof address === "object" ? address?.port : undefined;
    for (const remote of args.filter((one) => one.startsWith(":"))) {
      process.stdout.write(`Forwarding from 127.0.0.1:${port} -> ${remote.slice(1)}\n`);
    }
  });
}

function fail(message: string, code: number): void {
  process.stderr.write(`${message}\n`);
  process.exitCode = code;
}
