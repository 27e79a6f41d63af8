import { itemsOf } from "@fairlead/base";
import { ReadingBuilder, specOf } from "./reading.ts";
import { NODES } from "./resources.ts";
import type { SourceKind } from "./source.ts";

/** What the controller manager gave each node (core/v1 NodeSpec). */
export const nodes: SourceKind = {
  resources: [NODES],
  writtenByNodes: true,
  read(raw) {
    const spec = specOf(raw);
    const reading = new ReadingBuilder();
    if (itemsOf(spec["podCIDRs"]).length > 0) reading.addAll("spec.podCIDRs", spec["podCIDRs"]);
    else reading.add("spec.podCIDR", spec["podCIDR"]);
    return reading.done();
  },
};
