import type { FlagGroup } from "./definition.ts";
import * as type from "./types.ts";

/** A run alongside the proxy that serves the node. */
export const SHADOW_FLAGS: FlagGroup = {
  title: "Shadow run",
  flags: [
    {
      name: "shadow",
      type: type.boolean,
      fields: ["shadow"],
      document: "fairlead",
      withConfig: true,
      help: "Program nothing: compare what kube-proxy does on this node with what Fairlead would do, and report differences.",
    },
    {
      name: "shadow-grace-period",
      type: type.duration,
      fields: ["shadowGracePeriod"],
      document: "fairlead",
      withConfig: true,
      defaultText: "5s",
      help: "How long a difference must last to be reported: kube-proxy takes time to apply a change. Default: at least 3 × minSyncPeriod.",
    },
  ],
};
