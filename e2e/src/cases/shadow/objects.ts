import { type RawObject, webA1, webA2, webB1, workload } from "@fairlead/testkit";

/** Services that each kind of damage shows at: the damages name them. */
export const damagedObjects: readonly RawObject[] = [
  ...workload(1, { endpoints: [webA1, webB1], nodePort: true }).objects,
  ...workload(2, { endpoints: [webA1, webA2], loadBalancer: "VIP", sourceRanges: ["198.51.100.0/24"] }).objects,
  ...workload(3, { endpoints: [], external: true }).objects,
  ...workload(4, { endpoints: [webA1, webB1], affinitySeconds: 600 }).objects,
];
