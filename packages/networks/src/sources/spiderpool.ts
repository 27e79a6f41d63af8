import { ReadingBuilder, specOf } from "./reading.ts";
import type { SourceKind } from "./source.ts";

/** Spiderpool's pools; a disabled one still has pods. Spiderpool: pkg/k8s/apis/spiderpool.spidernet.io/v2beta1. */
export const spiderpool: SourceKind = {
  resources: [
    {
      group: "spiderpool.spidernet.io",
      version: "v2beta1",
      plural: "spiderippools",
      kind: "SpiderIPPool",
      namespaced: false,
    },
  ],
  read(raw) {
    const reading = new ReadingBuilder();
    reading.add("spec.subnet", specOf(raw)["subnet"]);
    return reading.done();
  },
};
