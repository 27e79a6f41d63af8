import { flag, text } from "../frame/options.ts";

/** Which node's kernel to look at. */
export const kernelOptions = {
  live: flag("Look at the kernel of this node, too; needs its rights."),
  on: text("NODE", "Look at the kernel of that node, by programs that are started in its agent's pod."),
  rules: text("FILE", "Look at what iptables-save printed there; - for standard input.", { completes: "path" }),
} as const;

/** In the place of a cluster and its nodes. */
export const sysdumpOption = text("FILE", "Look at what fairlead sysdump wrote there, of --on or the only node.", {
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
