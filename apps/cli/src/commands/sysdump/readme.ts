import type { Missing, SysdumpIndex } from "../../sysdump/dump.ts";

/** README.md of the archive. */
export function readmeText({ version, made, nodes, missing }: SysdumpIndex, archive: string): string {
  const answered = nodes.filter((node) => node.answered);
  const silent = nodes.filter((node) => !node.answered);
  return [
    `# ${archive}\n\nMade by fairlead ${version} at ${made}. ${answered.length} of ${nodes.length} nodes answered.\n`,
    ...(silent.length === 0 ? [] : [`\nNodes that did not answer: ${silent.map(({ name }) => name).join(", ")}\n`]),
    "\n## What is here\n\n",
    "| path | contents |\n| --- | --- |\n",
    ...CONTENTS.map(([path, contents]) => `| \`${path}\` | ${contents} |\n`),
    "\n## What is missing\n\n",
    ...missingLines("the cluster", missing),
    ...nodes.flatMap(({ name, missing: own }) => missingLines(name, own)),
    "\n## Look at it\n\n```sh\n",
    ...["explain NAMESPACE/SERVICE", "verify", "trace --from pod --to NAMESPACE/SERVICE", "console"].map(
      (command) => `fairlead ${command} --sysdump ${archive}.tar.gz --on ${answered[0]?.name ?? "NODE"}\n`,
    ),
    "```\n\n## What was left out\n\n",
    "Of objects only the fields are kept that Fairlead reads, of the configuration those that its schema has; a value that such a field\n",
    "cannot have is `invalid` here. There are no Secrets, no environment, no arguments of containers, no other annotations and labels, and\n",
    "nothing else of ConfigMaps. In logs, metrics and texts of the configuration, what looks like a key, a token or a password is replaced\n",
    "by `[left out]`, and so is each comment in rules of other programs. Addresses, names of objects and names of nodes are here. Read what\n",
    "you send.\n",
  ].join("");
}

const CONTENTS = [
  ["objects.json", "Services, EndpointSlices, Nodes, ServiceCIDRs and networks' objects, as manifests"],
  ["nodes/NODE/agent", "pages of the agent: /metrics, /configz, /proxyMode, /ownership, /livez"],
  [
    "nodes/NODE/state.json",
    "what the kernel holds: rules, tables, sets, virtual servers, addresses, devices, routes, affinity, settings, how many connections are tracked of each kind",
  ],
  ["nodes/NODE/verify.json", "what `fairlead verify` finds"],
  ["nodes/NODE/log.txt", "the end of the agent's log; previous-log.txt is that of the container before it"],
  ["index.json", "for programs"],
] as const;

function missingLines(of: string, missing: readonly Missing[]): readonly string[] {
  if (missing.length === 0) return [`- ${of}: nothing\n`];
  return missing.map(({ what, why }) => `- ${of}: ${what}: ${why.replaceAll(/\s+/g, " ")}\n`);
}
