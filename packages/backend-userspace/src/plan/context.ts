import type { EndpointSetName, IPFamily, NodePlan, ServicePortGroup } from "@fairlead/core";

/** Where the relay of a group's set listens; undefined: there is none, and its packets are refused. */
export type RelayPorts = (group: ServicePortGroup, set: EndpointSetName) => number | undefined;

/** Everything that rules depend on, besides the group itself. */
export interface RenderContext {
  readonly family: IPFamily;
  /** The node's address that the relays listen on. */
  readonly host: string;
  readonly node: NodePlan;
  /** Node ports are served on 127.0.0.0/8, too. */
  readonly localhostNodePorts: boolean;
}

/** Whether two contexts give the same rules, the addresses of node ports aside. */
export function rendersAlike(a: RenderContext, b: RenderContext): boolean {
  return a.host === b.host && JSON.stringify(a.node.detector) === JSON.stringify(b.node.detector);
}
