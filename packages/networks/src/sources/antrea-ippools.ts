import { rangeCIDRs, stringOf } from "@fairlead/base";
import { ReadingBuilder, recordsOf, specOf } from "./reading.ts";
import type { SourceKind } from "./source.ts";

/** Antrea's IPPools: each range is a CIDR, or a first and a last address. Antrea: pkg/apis/crd/v1beta1/types.go. */
export const antreaIPPools: SourceKind = {
  resources: [{ group: "crd.antrea.io", version: "v1beta1", plural: "ippools", kind: "IPPool", namespaced: false }],
  read(raw) {
    const reading = new ReadingBuilder();
    for (const [at, range] of recordsOf(specOf(raw)["ipRanges"]).entries()) {
      const field = `spec.ipRanges[${at}]`;
      reading.add(`${field}.cidr`, range["cidr"]);
      if (!("start" in range) && !("end" in range)) continue;
      const cidrs = rangeCIDRs(stringOf(range["start"]) ?? "", stringOf(range["end"]) ?? "");
      if (cidrs === undefined) reading.problem(field, range, "start and end must be addresses of one family, in order");
      else reading.addAll(field, cidrs);
    }
    return reading.done();
  },
};
