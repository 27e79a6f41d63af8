import { clientA, ovnA, ovnB, webA1, webB1 } from "../../addresses.ts";
import { rowsOf, workload } from "../case.ts";
import { everyMode, LEAVE, noEndpoints, plain } from "../expected.ts";

const row = rowsOf("ownership over time");

/** States of one service: its endpoints come and go. */
const ovn = [
  workload(131, { endpoints: [ovnA, ovnB] }),
  workload(131, { endpoints: [] }),
  workload(131, { endpoints: [webA1] }),
] as const;
const ours = [workload(132, { endpoints: [webA1] }), workload(132, { endpoints: [] })] as const;
const taken = [workload(133, { endpoints: [webA1, webB1] }), workload(133, { endpoints: [ovnA] })] as const;
const given = [workload(134, { endpoints: [ovnA] }), workload(134, { endpoints: [webA1, webB1] })] as const;
const mixed = [workload(135, { endpoints: [webA1, ovnA] }), workload(135, { endpoints: [] })] as const;
const turned = [
  workload(136, { endpoints: [ovnA] }),
  workload(136, { endpoints: [] }),
  workload(136, { endpoints: [webA1] }),
] as const;
const deleted = workload(137, { endpoints: [ovnA] });
const returned = workload(137, { endpoints: [] });

export const memoryCases = [
  row("foreign, rolled out to zero: still left", ovn[1], {
    before: [ovn[0].objects],
    from: clientA,
    expected: everyMode(LEAVE),
  }),
  row("ours, rolled out to zero: refused", ours[1], {
    before: [ours[0].objects],
    from: clientA,
    expected: noEndpoints,
  }),
  row("mixed, rolled out to zero: refused", mixed[1], {
    before: [mixed[0].objects],
    from: clientA,
    expected: noEndpoints,
  }),
  row("never had an endpoint: ours, refused", workload(138, { endpoints: [] }), {
    from: clientA,
    expected: noEndpoints,
  }),
  row("ours becomes foreign: all traces go", taken[1], {
    before: [taken[0].objects],
    from: clientA,
    expected: everyMode(LEAVE),
  }),
  row("foreign becomes ours", given[1], {
    before: [given[0].objects],
    from: clientA,
    expected: everyMode(plain([webA1, webB1])),
  }),
  row("foreign, to zero, then ours", turned[2], {
    before: [turned[0].objects, turned[1].objects],
    from: clientA,
    expected: everyMode(plain([webA1])),
  }),
  row("foreign, deleted, made again without endpoints: ours, refused", returned, {
    before: [deleted.objects, []],
    from: clientA,
    expected: noEndpoints,
  }),
];
