import type { AgentConfig } from "@fairlead/config";
import type { Mode } from "@fairlead/inspect";
import { list, type OptionSpec, text } from "../frame/options.ts";
import { nodeAddressOption } from "./node-address-option.ts";
import { metricsPortOption } from "./node-options.ts";

/** Which cluster, as for kubectl. */
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

/** Where the objects come from. */
export const sourceOptions = {
  file: list("PATH", "Manifests instead of a cluster: a file, a folder, or - for standard input.", {
    short: "f",
    completes: "path",
  }),
  ...accessOptions,
  node: text("NAME", "The node whose view is shown. Default: the name of this host."),
} as const;

/** Written out, so that help is given without loading what plans; a test holds it to `MODES`. */
const MODES = ["iptables", "ipvs", "nftables"] as const satisfies readonly Mode[];

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
  return { placeholder: MODES.join("|"), help, choices: MODES, read: mode.read };
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
