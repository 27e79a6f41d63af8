import { flag, text } from "../../frame/options.ts";
import { clusterOptions } from "../../inputs/cluster-options.ts";
import { metricsPortsOption, sysdumpOption } from "../../inputs/node-options.ts";

export const consoleOptions = {
  ...clusterOptions,
  live: flag("With -f: also compare the plan with the kernel and the agent of this node; needs root."),
  sysdump: sysdumpOption,
  port: text("PORT", "The port of 127.0.0.1 to listen on.", { defaultText: "any that is free" }),
  "no-open": flag("Print the address only; open no browser."),
  "metrics-port": metricsPortsOption,
} as const;
