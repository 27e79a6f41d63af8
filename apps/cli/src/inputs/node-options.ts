import { flag, text } from "../frame/options.ts";

/** Which node's kernel to look at. */
export const kernelOptions = {
  live: flag("Also read the kernel of this node; needs root."),
  on: text("NODE", "Read the kernel of this node, by programs that are started in its agent's pod."),
  rules: text("FILE", "Read this output of iptables-save; - for standard input.", { completes: "path" }),
} as const;

/** In the place of a cluster and its nodes. */
export const sysdumpOption = text("FILE", "Read this archive of fairlead sysdump: the node of --on, or the only one.", {
  completes: "path",
});

const metricsPort = (whose: string) =>
  text("PORT", `The port of the ${whose} metricsBindAddress.`, {
    defaultText: "10249, with --service-proxy-name 10349",
  });

/** For commands that ask one node's agent. */
export const metricsPortOption = metricsPort("agent's");
/** For commands that ask the agents of many nodes. */
export const metricsPortsOption = metricsPort("agents'");
