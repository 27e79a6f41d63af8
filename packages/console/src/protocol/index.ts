/** What the server sends to the page. JSON values only; nothing here runs. */

export type * from "./networks.ts";
export type * from "./node.ts";
export type * from "./rows.ts";
export type * from "./service.ts";
export type * from "./stream.ts";
export type * from "./trace.ts";
export type * from "./what-if.ts";
