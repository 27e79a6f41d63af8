import { fieldsOf, isAbsent, parseJSON, stringOf } from "@fairlead/base";
import { ReadingBuilder } from "./reading.ts";
import { NODES } from "./resources.ts";
import type { SourceKind } from "./source.ts";

const ANNOTATION = "k8s.ovn.org/node-subnets";

/**
 * What OVN-Kubernetes gave each node of its default network. The annotation is JSON: a list by network, or one text in
 * old versions. OVN-Kubernetes: go-controller/pkg/util/subnet_annotations.go.
 */
export const ovnKubernetesNodes: SourceKind = {
  resources: [NODES],
  writtenByNodes: true,
  read(raw) {
    const reading = new ReadingBuilder();
    const written = fieldsOf(fieldsOf(fieldsOf(raw)["metadata"])["annotations"])[ANNOTATION];
    if (isAbsent(written)) return reading.done();
    const field = `annotation ${ANNOTATION}`;
    const subnets = fieldsOf(parseJSON(stringOf(written) ?? ""))["default"];
    if (typeof subnets === "string") reading.add(field, subnets);
    else if (Array.isArray(subnets)) reading.addAll(field, subnets);
    else reading.problem(field, written, 'must be JSON such as {"default":["10.130.0.0/23"]}');
    return reading.done();
  },
};
