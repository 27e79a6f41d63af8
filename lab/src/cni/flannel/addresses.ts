import { nodeSubnets } from "../node-subnets.ts";

/** The network in flannel's net-conf.json, and the subnets that nodes lease of it; 0 is a node's end of the tunnel. */
export const subnets = nodeSubnets("10.42", "fd00:42::");
