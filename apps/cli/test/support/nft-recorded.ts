import { goldenScenario } from "@fairlead/testkit";

export const { objects, nft: recorded } = goldenScenario("10-lb-source-ranges");
export const stdin = JSON.stringify(objects);
const NODE = ["--node", "node-a", "--node-address", "10.201.0.10", "--cluster-cidr", "10.144.0.0/16"];
export const agent = [...NODE, "--mode", "nftables", "-f", "-"];
