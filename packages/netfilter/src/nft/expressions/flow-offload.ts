import type { ExpressionKind } from "./kind.ts";

/**
 * Puts the packet's connection into a flowtable: its later packets go from device to device and meet no rule. The rule
 * ends where the connection cannot be put there (not established, another protocol, already in a flowtable).
 */
export interface FlowOffload {
  readonly kind: "flow-offload";
  readonly flowtable: string;
}

/** NFTA_FLOW_TABLE_NAME. */
const DATA = { flowtable: 1 } as const;

export const flowOffload: ExpressionKind<FlowOffload> = {
  name: "flow_offload",
  encode: ({ flowtable }, writer) => void writer.text(DATA.flowtable, flowtable),
  decode(data) {
    const flowtable = data.text(DATA.flowtable);
    return flowtable === undefined ? undefined : { kind: "flow-offload", flowtable };
  },
  print: ({ flowtable }, printer) => printer.say(`flow add @${flowtable}`),
};
