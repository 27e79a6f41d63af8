import { join } from "node:path";
import { bundleIfStale } from "@fairlead/tooling/bundle";

export default function setup(): Promise<void> {
  return bundleIfStale(join(import.meta.dirname, "..", ".."));
}
