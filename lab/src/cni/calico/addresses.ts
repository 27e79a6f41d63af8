import { nodeSubnets } from "../node-subnets.ts";

/** The IP pool of each family, and the block that a node has of it; no address of a block is the node's. */
export const blocks = nodeSubnets("10.144", "fd00:144::", 120);
