import type { KernelVersion } from "@fairlead/lab/qemu/kernel-versions";
import type { GuestCounts } from "./counted.ts";
import { type FastPath, fairleadChange } from "./fairlead.ts";
import { ask } from "./measure.ts";
import { DEVICES, inNode, NODE, networkLines } from "./network.ts";
import { COUNTED, clusterOf, type Size } from "./objects.ts";
import { printedNumber } from "./printed.ts";
import { CHANGE, SUBJECTS } from "./units.ts";

/** Transactions of changes that are sent, there and back. */
const TIMES = 400;

const MEMORY_MIB = 3_072;

/** Instructions of one change of an endpoint, of the sender and the kernel's threads, without and with the option. */
export async function countChange(version: KernelVersion, size: Size) {
  const way = "one node";
  const objects = clusterOf(size);
  const of = (file: string, fastPath: FastPath) => fairleadChange(file, file, objects, fastPath);
  const subjects = [await of("without", undefined), await of("fast-path", DEVICES[way])];
  const script = [
    "count seed",
    ...networkLines(way, COUNTED.endpoints),
    ...subjects.flatMap(({ name, load }) => [
      inNode("nft flush ruleset"),
      ...load,
      `echo "${name} $(batch change ${NODE} ${TIMES} /guest/${name}-there /guest/${name}-back)"`,
    ]),
  ].join("\n");
  const files = Object.assign({}, ...subjects.map((subject) => subject.files));
  const { release, text } = await ask(version, { files, script, memoryMiB: MEMORY_MIB });
  const counted = (name: string) => ({ [CHANGE]: printedNumber(text, name) });
  const counts: GuestCounts = { [SUBJECTS.own]: counted("without"), [SUBJECTS.fast]: counted("fast-path") };
  return { release, counts };
}
