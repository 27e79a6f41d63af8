import type { AgentFolder, AgentProcess } from "@fairlead/lab/agent";
import { type Mode, servesLocalhost } from "@fairlead/lab/modes";
import type { Lab } from "@fairlead/lab/plain/lab";
import { clientA } from "@fairlead/testkit";
import { CONSOLE_FLAGS, NGINX_CALICO_IP, WEB } from "./services.ts";

interface Running {
  readonly lab: Lab;
  readonly folder: AgentFolder;
  readonly agent: AgentProcess;
  readonly mode: Mode;
}

/** Commands to look around with while the demo is kept running. */
export function tourOf({ lab, folder, agent, mode }: Running): readonly string[] {
  const inside = (name: string, command: string) => `${lab.namespace(name).argvPrefix.join(" ")} ${command}`;
  const tool = (command: string) =>
    [
      "apps/cli/dist/main.js",
      command,
      "-f",
      folder.manifests,
      "--node node-a --mode",
      mode.name,
      ...CONSOLE_FLAGS,
    ].join(" ");
  return [
    "the node's rules:",
    `  ${inside("node-a", mode.rules.look)}`,
    "requests:",
    `  ${inside(clientA.name, `curl -s http://${NGINX_CALICO_IP}`)}`,
    ...(servesLocalhost(mode) ? [`  ${inside("node-a", `curl -s http://127.0.0.1:${WEB.nodePort}`)}`] : []),
    "who owns which service, and the metrics:",
    `  ${inside("node-a", "curl -s http://127.0.0.1:10249/ownership")}`,
    `  ${inside("node-a", "curl -s http://127.0.0.1:10249/metrics")}`,
    "what the tool says of the node, once it is built (npm run demo -- --console builds it):",
    ...["verify", "explain nginx-calico --live", "flows"].map((command) => `  ${inside("node-a", tool(command))}`),
    `the objects, followed live: ${folder.manifests}/objects.yaml`,
    `the agent: process ${agent.pid}`,
  ];
}
