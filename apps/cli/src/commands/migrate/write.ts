import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { errorText } from "@fairlead/base";
import { stringify } from "yaml";
import { CommandFailure } from "../../frame/errors.ts";
import { fairleadObjects, type Installation } from "../../migrate/manifests.ts";

/**
 * Writes Fairlead's manifests as --apply would install them at first: for nodes with the label.
 *
 * @throws CommandFailure when they cannot be written
 */
export async function writeManifests(folder: string, installation: Installation): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
    for (const object of fairleadObjects(installation, "labeled")) {
      await writeFile(join(folder, `${object.kind.toLowerCase()}.yaml`), stringify(object, { lineWidth: 0 }));
    }
  } catch (error) {
    throw new CommandFailure(`--output-dir=${folder}: ${errorText(error)}`, { cause: error });
  }
}
