import { ownPrefix } from "./owned-folders.ts";

/** Of every folder that this process makes. */
export const folderPrefix = await ownPrefix("fairlead-e2e");
