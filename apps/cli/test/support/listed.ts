import { goldenScenario } from "@fairlead/testkit";

export const CLUSTER = ["--node", "node-a", "--cluster-cidr", "10.144.0.0/16"];
const { objects, iptables } = goldenScenario("10-lb-source-ranges");

export { iptables };
export const stdin = JSON.stringify(objects);
export const SVC = "KUBE-SVC-FYZB2HTOW53NRIPL";
