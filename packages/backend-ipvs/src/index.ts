export type { IpvsPort, LinksPort, Payload, RulesPort, ServersPort, SetsPort } from "./port.ts";
export { ipvsSemantics } from "./semantics.ts";
