#!/usr/bin/env node
// A kubectl for one node with one agent. FAKE_KUBECTL names a folder: what it is called with goes into calls.jsonl there, what
// the node's programs print comes from state.json.
import { appendFileSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

const folder = process.env.FAKE_KUBECTL;
const argv = process.argv.slice(2);
appendFileSync(join(folder, "calls.jsonl"), `${JSON.stringify(argv)}\n`);
const state = JSON.parse(readFileSync(join(folder, "state.json"), "utf8"));
const args = argv.filter((one) => !one.startsWith("--kubeconfig="));

if (args[0] === "get") {
  const node = /spec\.nodeName=([^,]+)/.exec(args.join(" "))?.[1];
  const selector = args.find((one) => one.startsWith("--selector="))?.slice("--selector=".length);
  const items = state.pods
    .filter((pod) => pod.node === node && pod.label === selector)
    .map(({ name, container }) => {
      return { metadata: { namespace: "kube-system", name }, spec: { containers: [{ name: container }] } };
    });
  process.stdout.write(JSON.stringify({ items }));
} else if (args[0] === "exec") {
  const command = args.slice(args.indexOf("--") + 1);
  const printed = state.programs[command.join(" ")] ?? state.programs[command[0]];
  if (printed === undefined) {
    process.stderr.write(`exec failed: ${command[0]}: No such file or directory\n`);
    process.exit(127);
  }
  process.stdout.write(printed);
} else if (args[0] === "port-forward") {
  const server = createServer((request, response) => {
    response.writeHead(request.url in state.endpoint ? 200 : 404);
    response.end(JSON.stringify(state.endpoint[request.url]));
  });
  server.listen(0, "127.0.0.1", () => {
    process.stdout.write(`Forwarding from 127.0.0.1:${server.address().port} -> 10249\n`);
  });
} else {
  process.stderr.write(`error: unknown command ${JSON.stringify(args[0])}\n`);
  process.exit(1);
}
