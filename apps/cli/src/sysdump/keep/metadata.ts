import { fields, type Keep, name, time } from "./keep.ts";

/** Labels and annotations that a kind keeps, with the form of each value. */
interface Marks {
  readonly labels?: Readonly<Record<string, Keep>>;
  readonly annotations?: Readonly<Record<string, Keep>>;
}

/** Everything else in metadata is left out: `last-applied-configuration` holds a whole object, with its secrets. */
export function metadata({ labels = {}, annotations = {} }: Marks = {}): Keep {
  return fields({
    name,
    namespace: name,
    creationTimestamp: time,
    deletionTimestamp: time,
    labels: fields(labels),
    annotations: fields(annotations),
  });
}
