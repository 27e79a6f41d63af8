/** Options that several commands have: which cluster, which node, how its agent is set up. */

import { parseAddress } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import type { Mode } from "@fairlead/inspect";
import { flag, list, type OptionSpec, text } from "../frame/command.ts";
import { UsageError } from "../frame/errors.ts";

export const kernelOptions = {
  live: flag("Also read the kernel of this node; needs root."),
  on: text("NODE", "Read the kernel of this node, by programs that are started in its agent's pod."),
  rules: text("FILE", "Read this output of iptables-save; - for standard input.", { completes: "path" }),
} as const;

/** In the place of a cluster and its nodes. */
export const sysdumpOption = text("FILE", "Read this archive of fairlead sysdump: the node of --on, or the only one.", {
  completes: "path",
});

export const metricsPortOption = text("PORT", "The port of the agent's metricsBindAddress.", {
  defaultText: "10249, with --service-proxy-name 10349",
});
export const healthPortOption = text("PORT", "The port of the agent's healthzBindAddress.", {
  defaultText: "10256, with --service-proxy-name 10356",
});

export const accessOptions = {
  kubeconfig: text(
    "FILE",
    "The cluster's kubeconfig. Default: those of $KUBECONFIG, then ~/.kube/config, then the pod's account.",
    {
      completes: "path",
    },
  ),
  context: text("NAME", "The context of the kubeconfig. Default: its current one."),
  server: text("URL", "The API server's address. Default: the one of the kubeconfig.", { short: "s" }),
  as: text("USER", "Ask the API server as this user (impersonation). Default: as the kubeconfig says."),
  "as-group": list("GROUP", "Ask the API server as a member of this group as well. Needs --as."),
  "request-timeout": text("TIME", "How long a request may take: 5s, 1m, or seconds; 0: no limit.", {
    defaultText: "60s",
  }),
} as const;

/** The same in every command: it narrows what is listed, and says where a service without a namespace is. */
export const namespaceOption = text(
  "NAME",
  "Only services of this namespace; also the namespace of a service that is named without one. Default: all namespaces; for a named service that of the context, else default.",
  { short: "n" },
);

export const sourceOptions = {
  file: list("PATH", "Manifests instead of a cluster: a file, a folder, or - for standard input.", {
    short: "f",
    completes: "path",
  }),
  ...accessOptions,
  node: text("NAME", "The node whose view is shown. Default: the name of this host."),
} as const;

/** Written out, so that help is given without loading what plans; a test holds them to the modes that plans have. */
const READ_MODES = ["iptables", "ipvs", "nftables"] as const satisfies readonly Mode[];
const MODES = [...READ_MODES, "kernelspace"] as const satisfies readonly Mode[];

const mode = modeOption(MODES);

/** Also a mode that no plan can be made for, where none has to be. */
export const anyModeOption: OptionSpec<AgentConfig["mode"] | undefined> = modeOption([...MODES, "userspace"]);

function modeOption<Name extends AgentConfig["mode"]>(names: readonly Name[]): OptionSpec<Name | undefined> {
  return {
    placeholder: names.join("|"),
    help: "Proxy mode; with --config, the mode in that file applies.",
    choices: names,
    defaultText: "iptables",
    read: (texts) => names.find((one) => one === texts.at(-1)),
  };
}

/** `--to-mode`: another mode, that a command compares with or changes to. */
export function toModeOption(help: string): OptionSpec<Mode | undefined> {
  return { placeholder: READ_MODES.join("|"), help, choices: READ_MODES, read: mode.read };
}

/** How the agent of that node is set up. What is not named here is taken from --config or by --agent-flag. */
export const agentOptions = {
  mode,
  config: text("FILE", "The agent's configuration file (KubeProxyConfiguration).", { completes: "path" }),
  "service-proxy-name": text(
    "NAME",
    "Use the agent with this --service-proxy-name, which runs alongside the node's default proxy.",
  ),
  "cluster-cidr": list("CIDR", "Pod CIDRs of the cluster, as in the agent's --cluster-cidr."),
  "exclude-cluster-cidr": list("CIDR", "CIDRs of other pod networks, as in the agent's --exclude-cluster-cidr."),
  "agent-flag": list("NAME=VALUE", "Any other flag of the agent, such as masquerade-all=true."),
  "node-address": nodeAddressOption("An address of the node. Default: those of its Node object."),
  "metrics-port": metricsPortOption,
  memory: text("FILE", "The agent's memory of owners (ownership.json in its --state-dir).", { completes: "path" }),
} as const;

export const clusterOptions = { ...sourceOptions, ...agentOptions } as const;

/** `--node-address`: may be given more than once, or with commas between. */
export function nodeAddressOption(help: string): OptionSpec<readonly string[]> {
  const read = (texts: readonly string[]) => texts.flatMap((text) => text.split(",")).map(addressOf);
  return { ...list("ADDRESS", help), read };
}

function addressOf(text: string): string {
  const address = parseAddress(text.trim());
  if (address !== undefined) return address.text;
  throw new UsageError(`--node-address=${text}: must be an address, such as 192.0.2.10 or 2001:db8::10`);
}
